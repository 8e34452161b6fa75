"""Structured logs: JSON lines in production, readable lines in the demo; never local variables."""

import logging
import sys

import structlog

_PROBE, _UNREADY = "/readyz", 503
_SHARED = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


class CalmProbes(logging.Filter):
    """A portal that is not ready yet answers 503, once a probe: that is an answer, not an error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell of it once, as information, and drop Django's second line about it."""
        if getattr(record, "status_code", 0) == _UNREADY:
            return getattr(getattr(record, "request", None), "path", "") != _PROBE
        event = record.msg
        if isinstance(event, dict) and event.get("code") == _UNREADY and event.get("request") == f"GET {_PROBE}":
            record.levelno, record.levelname, event["level"] = logging.INFO, "INFO", "info"
        return True


def logging_config(*, json: bool, level: str) -> dict[str, object]:
    """Return the LOGGING dictionary and set structlog up to use it."""
    structlog.configure(
        processors=[
            *_SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # The plain traceback formatter: the pretty one prints local variables, and so secrets.
    renderer = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": list(_SHARED),
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *([structlog.processors.format_exc_info] if json else []),
            renderer,
        ],
    }
    quiet = {"level": "WARNING"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "filters": {"calm_probes": {"()": CalmProbes}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.request": {"filters": ["calm_probes"]},
            "django_structlog.middlewares.request": {"filters": ["calm_probes"]},
            "httpx": quiet,
            "urllib3": quiet,
            "celery.beat": quiet,
            "celery.worker.strategy": quiet,
            "celery.app.trace": quiet,
        },
    }
