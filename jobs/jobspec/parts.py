"""Readers of the nested parts of a JobSpec, each with the rules between its own fields."""

from collections.abc import Callable

from clusters import quantities
from jobs.jobspec import cron, syntax
from jobs.jobspec.fields import (
    Amount,
    Checkpoint,
    Code,
    Concurrency,
    Effect,
    HugePages,
    Operator,
    PageSize,
    PodSet,
    Probe,
    Schedule,
    SecretRef,
    Toleration,
    Topology,
    TopologyMode,
    Volume,
)
from jobs.jobspec.reader import Reader

TOPOLOGY_MODES: tuple[TopologyMode, ...] = ("none", "prefer", "require")
OPERATORS: tuple[Operator, ...] = ("Equal", "Exists")
EFFECTS: tuple[Effect, ...] = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
CONCURRENCIES: tuple[Concurrency, ...] = ("forbid", "allow", "replace")
PAGE_SIZES: tuple[PageSize, ...] = ("2Mi", "1Gi")
PREFERRED_LEVEL = "rack"

PORT_MAX = 65_535
POD_SET_WORKERS_MAX = 64
POD_SET_ARGUMENTS_MAX = 64
POD_SET_ENV_MAX = 64
PROBE_SECONDS_MAX = 86_400
PROBE_FAILURES_MAX = 1000
TOLERATION_MAX_S = 7 * 86_400
# The controller of Kubernetes looks about every ten seconds: with less, runs would be left out by chance.
STARTING_DEADLINE_MIN_S = 60
STARTING_DEADLINE_MAX_S = 7 * 86_400
# How a run ended is read from its Job, so that one is kept in any case.
KEPT_MIN = 1
KEPT_MAX = 50
CHECKPOINT_MIN_S = 10
CHECKPOINT_MAX_S = 7 * 86_400
# Delay and period in seconds: weights take a while to load, a restart costs more than a late answer.
READINESS_S = (30, 10)
LIVENESS_S = (60, 30)


def read_secret(reader: Reader) -> SecretRef:
    """A secret goes to exactly one place: a variable or a file."""
    secret = SecretRef(
        name=reader.require("name", reader.text("name", syntax.OBJECT_NAME), instead=""),
        key=reader.require("key", reader.text("key", syntax.SECRET_KEY), instead=""),
        env=reader.text("env", syntax.ENV_NAME),
        mount_path=reader.text("mount_path", syntax.MOUNT_PATH),
    )
    if reader.has("env") == reader.has("mount_path"):
        reader.refuse("", "env_or_mount_path")
    return secret


def read_code(reader: Reader) -> Code:
    """A repository by https or ssh; credentials only by the name of a secret."""
    return Code(
        git_url=reader.require("git_url", reader.text("git_url", syntax.GIT_URL), instead=""),
        ref=reader.text("ref", syntax.GIT_REF) or "HEAD",
        path=reader.text("path", syntax.REPOSITORY_PATH),
        secret=reader.text("secret", syntax.OBJECT_NAME),
    )


def read_amount(reader: Reader) -> Amount:
    """Request and limit above nothing, request not above limit; a limit alone is both, as in Kubernetes."""
    limit = read_amount_text(reader, "limit")
    request = read_amount_text(reader, "request")
    if request is None and limit is None and not (reader.has("request") or reader.has("limit")):
        reader.refuse("request", "required")
    if request and limit and quantities.parse(request) > quantities.parse(limit):
        reader.refuse("request", "request_above_limit", request=request, limit=limit)
    return Amount(request=request or limit or "", limit=limit)


def read_amount_text(reader: Reader, key: str) -> str | None:
    """A quantity above nothing."""
    text = reader.quantity(key, syntax.QUANTITY)
    if text is not None and quantities.parse(text) <= 0:
        reader.refuse(key, "not_above_zero", value=text)
        return None
    return text


def read_huge_pages(reader: Reader) -> HugePages:
    """A whole number of pages above nothing."""
    size = reader.choice("size", PAGE_SIZES) or "2Mi"
    amount = reader.require("amount", read_amount_text(reader, "amount"), instead="")
    if amount and quantities.parse(amount) % quantities.parse(size):
        reader.refuse("amount", "not_whole_pages", value=amount, size=size)
    return HugePages(amount=amount, size=size)


def read_topology(reader: Reader) -> Topology:
    """A level goes with "prefer" (rack when not named) and "require" (always named)."""
    mode = reader.choice("mode", TOPOLOGY_MODES) or "none"
    level = reader.text("level", syntax.LEVEL)
    if mode == "require" and not reader.has("level"):
        reader.refuse("level", "required")
    if mode == "none" and level is not None:
        reader.refuse("level", "level_without_mode", value=level)
    return Topology(mode=mode, level=level or (PREFERRED_LEVEL if mode == "prefer" else None))


def read_volume(reader: Reader) -> Volume:
    """A claim and where it is mounted."""
    return Volume(
        claim=reader.require("claim", reader.text("claim", syntax.OBJECT_NAME), instead=""),
        mount_path=reader.require("mount_path", reader.text("mount_path", syntax.MOUNT_PATH), instead=""),
        read_only=reader.flag("read_only") or False,
    )


def read_toleration(reader: Reader) -> Toleration:
    """A taint by its key: tolerating every taint there is would also mean broken nodes."""
    toleration = Toleration(
        key=reader.require("key", reader.text("key", syntax.LABEL_KEY), instead=""),
        operator=reader.choice("operator", OPERATORS) or "Equal",
        value=reader.text("value", syntax.LABEL_VALUE) or "",
        effect=reader.choice("effect", EFFECTS) or "",
        seconds=reader.whole("seconds", 0, TOLERATION_MAX_S),
    )
    if toleration.operator == "Exists" and toleration.value:
        reader.refuse("value", "value_with_exists", value=toleration.value)
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        reader.refuse("seconds", "seconds_without_no_execute")
    return toleration


def read_checkpoint(reader: Reader) -> Checkpoint:
    """The folder of the checkpoints and the seconds between two."""
    return Checkpoint(
        path=reader.require("path", reader.text("path", syntax.MOUNT_PATH), instead=""),
        interval_s=reader.whole("interval_s", CHECKPOINT_MIN_S, CHECKPOINT_MAX_S),
    )


def read_schedule(reader: Reader) -> Schedule:
    """A cron text and its time zone."""
    keep_succeeded = reader.whole("keep_succeeded", KEPT_MIN, KEPT_MAX)
    keep_failed = reader.whole("keep_failed", KEPT_MIN, KEPT_MAX)
    return Schedule(
        cron=reader.require("cron", read_cron(reader, "cron"), instead=""),
        time_zone=reader.text("time_zone", syntax.TIME_ZONE) or "Etc/UTC",
        concurrency=reader.choice("concurrency", CONCURRENCIES) or "forbid",
        starting_deadline_s=reader.whole("starting_deadline_s", STARTING_DEADLINE_MIN_S, STARTING_DEADLINE_MAX_S),
        keep_succeeded=3 if keep_succeeded is None else keep_succeeded,
        keep_failed=1 if keep_failed is None else keep_failed,
    )


def read_cron(reader: Reader, key: str) -> str | None:
    """A text that comes due some day."""
    text = reader.text(key, syntax.CRON)
    if text is None:
        return None
    try:
        cron.parse(text)
    except cron.CronError as error:
        reader.refuse(key, error.code, **error.numbers)
        return None
    return " ".join(text.split())


def read_pod_set(reader: Reader) -> PodSet:
    """Pods of another shape that start with the workers, and stop with them."""
    return PodSet(
        name=reader.require("name", reader.text("name", syntax.POD_SET), instead=""),
        workers=reader.whole("workers", 1, POD_SET_WORKERS_MAX) or 1,
        image=reader.text("image", syntax.IMAGE),
        command=reader.texts("command", syntax.ARGUMENT, most=POD_SET_ARGUMENTS_MAX),
        args=reader.texts("args", syntax.ARGUMENT, most=POD_SET_ARGUMENTS_MAX),
        env=reader.pairs("env", syntax.ENV_NAME, syntax.ENV_VALUE, most=POD_SET_ENV_MAX),
        cpu=reader.part("cpu", read_amount),
        memory=reader.part("memory", read_amount),
    )


def read_readiness(port: int | None) -> Callable[[Reader], Probe]:
    """A probe that opens the service to a replica: after 30 s, every 10 s; on `port` when it names none."""
    return lambda reader: _read_probe(reader, port, READINESS_S)


def read_liveness(port: int | None) -> Callable[[Reader], Probe]:
    """A probe that restarts a replica: after 60 s, every 30 s; on `port` when it names none."""
    return lambda reader: _read_probe(reader, port, LIVENESS_S)


def _read_probe(reader: Reader, default_port: int | None, seconds: tuple[int, int]) -> Probe:
    delay_s = reader.whole("delay_s", 0, PROBE_SECONDS_MAX)
    port = reader.whole("port", 1, PORT_MAX)
    if default_port is None and not reader.has("port"):
        reader.refuse("port", "required")
    return Probe(
        path=reader.require("path", reader.text("path", syntax.URL_PATH), instead=""),
        port=port or default_port or 0,
        delay_s=seconds[0] if delay_s is None else delay_s,
        period_s=reader.whole("period_s", 1, PROBE_SECONDS_MAX) or seconds[1],
        timeout_s=reader.whole("timeout_s", 1, PROBE_SECONDS_MAX),
        failure_threshold=reader.whole("failure_threshold", 1, PROBE_FAILURES_MAX),
    )
