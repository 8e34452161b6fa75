"""Exporter text -> readings, one per GPU. Only the fields that are charted, or tell a fault, are read.

Source of names and units: NVIDIA dcgm-exporter, etc/default-counters.csv.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# Percent, MiB, watts, degrees Celsius.
FIELDS: Mapping[str, str] = {
    "DCGM_FI_DEV_GPU_UTIL": "utilisation",
    "DCGM_FI_DEV_FB_USED": "memory_used",
    "DCGM_FI_DEV_FB_FREE": "memory_free",
    "DCGM_FI_DEV_FB_RESERVED": "memory_reserved",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_GPU_TEMP": "temperature",
    # The last one that the GPU reported, for as long as the exporter runs; 0: none.
    "DCGM_FI_DEV_XID_ERRORS": "xid",
}
# DCGM writes "no value" as a number next to the largest 64-bit integer.
BLANK_ABOVE = 9e18
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


@dataclass(slots=True)
class Reading:
    """What one GPU, or one MIG instance of it, showed in one scrape. A field that is missing was not measured."""

    gpu: str
    index: int
    namespace: str = ""
    pod: str = ""
    values: dict[str, float] = field(default_factory=dict)

    @property
    def memory_total(self) -> float | None:
        """MiB of the device: used, free and reserved together."""
        parts = [self.values.get(name) for name in ("memory_used", "memory_free")]
        if None in parts:
            return None
        return sum(part for part in parts if part is not None) + self.values.get("memory_reserved", 0.0)


def parse(text: str) -> list[Reading]:
    """Return the readings by device. A line that cannot be read is left out; a device that shows twice counts once."""
    readings: dict[str, Reading] = {}
    for name, labels, value in _samples(text):
        key = _device(labels)
        if not key:
            continue
        reading = readings.setdefault(key, Reading(gpu=key, index=_index(labels)))
        # The same device may come with and without its pod, or with the exporter's own pod and ours as "exported_".
        if pod := labels.get("exported_pod") or labels.get("pod", ""):
            exported = "exported_pod" in labels
            if exported or not reading.pod:
                reading.pod = pod
                reading.namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        reading.values.setdefault(FIELDS[name], value)
    return list(readings.values())


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.splitlines():
        name, brace, rest = line.partition("{")
        if not brace or name not in FIELDS:
            continue
        body, closing, number = rest.rpartition("}")
        value = _number(number)
        if not closing or value is None:
            continue
        yield name, {key: _ESCAPE.sub(r"\1", text) for key, text in _LABEL.findall(body)}, value


def _number(text: str) -> float | None:
    words = text.split()
    try:
        value = float(words[0])
    except (ValueError, IndexError):
        return None
    return value if math.isfinite(value) and abs(value) < BLANK_ABOVE else None


def _device(labels: Mapping[str, str]) -> str:
    uuid = labels.get("UUID") or labels.get("uuid") or ""
    instance = labels.get("GPU_I_ID", "")
    return f"{uuid}/{instance}" if uuid and instance else uuid


def _index(labels: Mapping[str, str]) -> int:
    number = labels.get("gpu", "")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 5 else 0
