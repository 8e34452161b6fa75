"""Lengths of time as people write them in a form: "12h", "1d 6h", "90m", "30s"; a plain number means seconds."""

import re
from collections.abc import Mapping

_UNITS: Mapping[str, int] = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"([0-9]{1,9})\s*([dhms]?)")
_WHOLE = re.compile(r"\s*(?:[0-9]{1,9}\s*[dhms]\s*)+|\s*[0-9]{1,9}\s*")


def seconds_of(text: str) -> int | None:
    """Return the seconds of a text, None when it is no length of time."""
    if not _WHOLE.fullmatch(text.lower()):
        return None
    return sum(int(number) * _UNITS[unit or "s"] for number, unit in _PART.findall(text.lower()))


def text_of(seconds: int) -> str:
    """Return the shortest text that means exactly these seconds."""
    parts: list[str] = []
    rest = seconds
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"
