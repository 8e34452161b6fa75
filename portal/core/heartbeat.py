"""Signs of life: processes write them, /readyz and every page read them."""

from collections.abc import Mapping
from datetime import timedelta

from portal.core import clock
from portal.core.models import Heartbeat

# Each loop beats every few seconds; three misses of the slowest make a process stale.
STALE_AFTER = timedelta(seconds=20)
EXPECTED = ("worker", "beat", "watch")


def beat(process: str, detail: Mapping[str, object] | None = None) -> None:
    """Say that the process lives."""
    Heartbeat.objects.update_or_create(process=process, defaults={"seen_at": clock.now(), "detail": dict(detail or {})})


def stale_processes() -> tuple[str, ...]:
    """Return the names of the expected processes that were not heard of lately."""
    since = clock.now() - STALE_AFTER
    alive = set(Heartbeat.objects.filter(seen_at__gte=since).values_list("process", flat=True))
    return tuple(name for name in EXPECTED if name not in alive)
