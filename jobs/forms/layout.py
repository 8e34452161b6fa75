"""Form <-> JobSpec document: which input stands for which path of the document. No rules here: `jobs.jobspec` has them.

What an input does not stand for stays in the document as it was.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from jobs.forms import durations
from jobs.forms.rows import Row

Document = dict[str, Any]
TRAINING, INFERENCE = "training", "inference"
# Written where a field must be switched off rather than left to its default.
NEVER = "never"
NONE = "none"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """One input for one value. `kind` is the kind of job that has it, empty for both."""

    name: str
    path: tuple[str, ...]
    read: Callable[[str], object] = str
    write: Callable[[Any], str] = str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of rows for one list or map of the document."""

    name: str
    read: Callable[[list[Row]], object]
    write: Callable[[Any], list[Row]]
    kind: str = ""


def number(text: str) -> object:
    """Return the whole number of a text; a text that is none is kept, for the checks to name it."""
    return int(text) if _WHOLE.fullmatch(text) else text


def duration(text: str) -> object:
    """Return seconds."""
    seconds = durations.seconds_of(text)
    return text if seconds is None else seconds


def duration_or_never(text: str) -> object:
    """Return seconds, or None for "never"."""
    return None if text.strip().lower() == NEVER else duration(text)


def number_or_none(text: str) -> object:
    """Return a number, or None for "none"."""
    return None if text.strip().lower() == NONE else number(text)


def duration_text(value: object) -> str:
    """Return seconds as people write them."""
    if value is None:
        return NEVER
    return durations.text_of(value) if isinstance(value, int) and value >= 0 else str(value)


def or_none(value: object) -> str:
    """Return the text of a value, "none" where it is switched off."""
    return NONE if value is None else str(value)


def _read_texts(rows: list[Row]) -> list[str]:
    return [row["value"] for row in rows]


def _write_texts(values: Any) -> list[Row]:
    return [{"value": str(value)} for value in values]


def _read_pairs(rows: list[Row]) -> dict[str, str]:
    return {row["name"]: row["value"] for row in rows if row["name"] or row["value"]}


def _write_pairs(values: Any) -> list[Row]:
    return [{"name": str(name), "value": str(value)} for name, value in dict(values).items()]


def _read_volumes(rows: list[Row]) -> list[Document]:
    return [
        {"claim": row["claim"], "mount_path": row["mount_path"], **({"read_only": True} if row["read_only"] else {})}
        for row in rows
    ]


def _read_secrets(rows: list[Row]) -> list[Document]:
    return [{name: value for name, value in row.items() if value} for row in rows]


def _write_parts(values: Any) -> list[Row]:
    return [
        {name: ("on" if value else "") if isinstance(value, bool) else str(value) for name, value in dict(part).items()}
        for part in values
    ]


def _probe(name: str) -> tuple[Scalar, ...]:
    return (
        Scalar(f"{name}_path", (name, "path"), kind=INFERENCE),
        Scalar(f"{name}_delay", (name, "delay_s"), duration, duration_text, INFERENCE),
        Scalar(f"{name}_period", (name, "period_s"), duration, duration_text, INFERENCE),
    )


SCALARS: tuple[Scalar, ...] = (
    Scalar("name", ("name",)),
    Scalar("priority", ("priority",)),
    Scalar("queue", ("queue",)),
    Scalar("image", ("image",)),
    Scalar("image_pull_secret", ("image_pull_secret",)),
    Scalar("description", ("description",)),
    Scalar("code_url", ("code", "git_url")),
    Scalar("code_ref", ("code", "ref")),
    Scalar("code_path", ("code", "path")),
    Scalar("code_secret", ("code", "secret")),
    Scalar("workers", ("workers",), number, kind=TRAINING),
    Scalar("min_workers", ("min_workers",), number, kind=TRAINING),
    Scalar("replicas", ("replicas",), number, kind=INFERENCE),
    Scalar("gpus_per_worker", ("gpus_per_worker",), number),
    Scalar("cpu_request", ("cpu", "request")),
    Scalar("cpu_limit", ("cpu", "limit")),
    Scalar("memory_request", ("memory", "request")),
    Scalar("memory_limit", ("memory", "limit")),
    Scalar("shared_memory", ("shared_memory",)),
    Scalar("workload", ("workload",), kind=TRAINING),
    Scalar("qos", ("qos",)),
    Scalar("huge_pages_amount", ("huge_pages", "amount")),
    Scalar("huge_pages_size", ("huge_pages", "size")),
    Scalar("runtime_class", ("runtime_class",)),
    Scalar("topology_mode", ("topology", "mode")),
    Scalar("topology_level", ("topology", "level")),
    Scalar("spread_policy", ("spread_policy",)),
    Scalar("max_runtime", ("max_runtime_s",), duration, duration_text, TRAINING),
    Scalar("backoff_limit", ("backoff_limit",), number, kind=TRAINING),
    Scalar("ttl", ("ttl_s",), duration_or_never, duration_text, TRAINING),
    Scalar("checkpoint_path", ("checkpoint", "path"), kind=TRAINING),
    Scalar("checkpoint_interval", ("checkpoint", "interval_s"), duration, duration_text, TRAINING),
    Scalar("cron", ("schedule", "cron"), kind=TRAINING),
    Scalar("time_zone", ("schedule", "time_zone"), kind=TRAINING),
    Scalar("concurrency", ("schedule", "concurrency"), kind=TRAINING),
    Scalar("starting_deadline", ("schedule", "starting_deadline_s"), duration, duration_text, TRAINING),
    Scalar("keep_succeeded", ("schedule", "keep_succeeded"), number, kind=TRAINING),
    Scalar("keep_failed", ("schedule", "keep_failed"), number, kind=TRAINING),
    Scalar("port", ("port",), number_or_none, or_none, INFERENCE),
    Scalar("service_port", ("service_port",), number_or_none, or_none, INFERENCE),
    *_probe("readiness"),
    *_probe("liveness"),
)
LISTINGS: tuple[Listing, ...] = (
    Listing("command", _read_texts, _write_texts),
    Listing("args", _read_texts, _write_texts),
    Listing("accelerators", _read_texts, _write_texts),
    Listing("clusters", _read_texts, _write_texts),
    Listing("env", _read_pairs, _write_pairs),
    Listing("labels", _read_pairs, _write_pairs),
    Listing("secrets", _read_secrets, _write_parts),
    Listing("volumes", _read_volumes, _write_parts),
)


def has(part: Scalar | Listing, kind: str) -> bool:
    """Whether a job of this kind has the field."""
    return part.kind in ("", kind)


def foreign_to(kind: str) -> list[str]:
    """Return the inputs that a job of this kind does not have."""
    return [scalar.name for scalar in SCALARS if not has(scalar, kind)]


def inputs_of(document: Document, kind: str) -> dict[str, Any]:
    """Return what the inputs show for a document. Raise ValueError or TypeError where a list is none."""
    inputs: dict[str, Any] = {}
    for scalar in SCALARS:
        holder, key = _holder(document, scalar.path), scalar.path[-1]
        if has(scalar, kind) and holder is not None and key in holder:
            value = holder[key]
            inputs[scalar.name] = "" if value is None and scalar.write is str else scalar.write(value)
    for listing in LISTINGS:
        if has(listing, kind) and document.get(listing.name):
            inputs[listing.name] = listing.write(document[listing.name])
    return inputs


def document_of(inputs: Mapping[str, Any], base: Document, kind: str) -> Document:
    """Lay what was typed over the document that the form began with."""
    document = deepcopy(base)
    for scalar in SCALARS:
        if has(scalar, kind):
            _put(document, scalar, str(inputs.get(scalar.name) or "").strip())
    for listing in LISTINGS:
        if has(listing, kind):
            _set(document, listing.name, listing.read(inputs.get(listing.name) or []))
    _drop_emptied_parts(document, kind)
    return document


def _put(document: Document, scalar: Scalar, text: str) -> None:
    holder: Document = document
    for key in scalar.path[:-1]:
        inner = holder.get(key)
        holder = inner if isinstance(inner, dict) else holder.setdefault(key, {}) if inner is None else {}
    if text:
        holder[scalar.path[-1]] = scalar.read(text)
    else:
        holder.pop(scalar.path[-1], None)


def _set(document: Document, key: str, value: object) -> None:
    if value:
        document[key] = value
    else:
        document.pop(key, None)


def _drop_emptied_parts(document: Document, kind: str) -> None:
    """A part whose inputs are all empty is not wanted, whatever else the form does not show of it."""
    shown: dict[str, set[str]] = {}
    for scalar in SCALARS:
        if has(scalar, kind) and len(scalar.path) > 1:
            shown.setdefault(scalar.path[0], set()).add(scalar.path[1])
    for key, names in shown.items():
        if isinstance(part := document.get(key), dict) and not names & set(part):
            del document[key]


def _holder(document: Document, path: tuple[str, ...]) -> Document | None:
    holder: Any = document
    for key in path[:-1]:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else None
