"""Cron texts as Kubernetes reads them (five fields, or @daily and the like), and when they come due. Pure.

A time that a clock change skips does not come that day; one that it repeats comes twice.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

_SHOWN = 40
# Kubernetes gives up looking for a time after so long.
YEARS_AHEAD = 5
SHORTCUTS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGE = re.compile(r"(?P<low>\*|\?|[0-9a-z]+)(?:-(?P<high>[0-9a-z]+))?(?:/(?P<step>[0-9]+))?")
_DIGITS_MAX = 4


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Field("day of the week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


class CronError(ValueError):
    """No cron text, or one that never comes due: a code and its numbers, as problems of a document have them."""

    def __init__(self, code: str, **numbers: int | str) -> None:
        super().__init__(code)
        self.code = code
        self.numbers = numbers


@dataclass(frozen=True, slots=True)
class Cron:
    """When it comes due. With `is_either` one of the two kinds of day is enough, else both must hold."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    is_either: bool


def parse(text: str) -> Cron:
    """Read a cron text. Raise CronError, which names the field and its limits."""
    words = text.split()
    if len(words) == 1 and words[0].startswith("@"):
        if words[0] not in SHORTCUTS:
            raise CronError("cron_shortcut", value=words[0][:_SHOWN], choices=", ".join(SHORTCUTS))
        words = SHORTCUTS[words[0]].split()
    if len(words) != len(_FIELDS):
        raise CronError("cron_fields", count=len(words))
    minutes, hours, days, months, weekdays = (
        _values(field, word.lower()) for field, word in zip(_FIELDS, words, strict=True)
    )
    is_either = not (_is_open(words[2]) or _is_open(words[4]))
    cron = Cron(minutes, hours, days, months, weekdays, is_either)
    if not any(_dates(cron, date(2024, 1, 1), years=28)):
        raise CronError("cron_never")
    return cron


def next_times(cron: Cron, zone: str, after: datetime, count: int) -> list[datetime]:
    """Return the next times it comes due after a moment, in UTC; fewer where none come within five years."""
    found: list[datetime] = []
    for moment in _times(cron, ZoneInfo(zone), after.astimezone(UTC)):
        found.append(moment)
        if len(found) == count:
            break
    return found


def _times(cron: Cron, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    # A clock that is set back repeats up to a few hours.
    start = after.astimezone(zone) - timedelta(hours=3)
    for day in _dates(cron, start.date(), years=YEARS_AHEAD):
        first = start.hour if day == start.date() else 0
        for hour in sorted(hour for hour in cron.hours if hour >= first):
            for moment in _in_hour(cron, zone, day, hour):
                if moment > after:
                    yield moment
                    after = moment


def _in_hour(cron: Cron, zone: tzinfo, day: date, hour: int) -> list[datetime]:
    """Return the moments in one hour of the clock: none that it skips, both of those that it repeats."""
    found = set()
    for minute in cron.minutes:
        for fold in (0, 1):
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold)
            moment = wall.astimezone(UTC)
            if moment.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
                found.add(moment)
    return sorted(found)


def _dates(cron: Cron, start: date, *, years: int) -> Iterator[date]:
    day, end = start, start + timedelta(days=366 * years)
    while day < end:
        if day.month not in cron.months:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            continue
        in_month, in_week = day.day in cron.days, (day.weekday() + 1) % 7 in cron.weekdays
        if (in_month or in_week) if cron.is_either else (in_month and in_week):
            yield day
        day += timedelta(days=1)


def _is_open(word: str) -> bool:
    """Whether the field leaves the day open: a star among its parts, not one with steps."""
    return any(part in ("*", "?", "*/1", "?/1") for part in word.split(","))


def _values(field: _Field, word: str) -> frozenset[int]:
    return frozenset(number for part in word.split(",") for number in _part(field, part))


def _part(field: _Field, part: str) -> range:
    match = _RANGE.fullmatch(part)
    if match is None or (match["low"] in ("*", "?") and match["high"]):
        raise CronError("cron_syntax", part=field.name, value=part[:_SHOWN])
    step = int(match["step"][:_DIGITS_MAX]) if match["step"] else 1
    if step == 0:
        raise CronError("cron_syntax", part=field.name, value=part[:_SHOWN])
    if match["low"] in ("*", "?"):
        return range(field.low, field.high + 1, step)
    low = _number(field, match["low"])
    last = field.high if match["step"] else low
    high = _number(field, match["high"]) if match["high"] else last
    if low > high:
        raise CronError("cron_backwards", part=field.name, value=part[:_SHOWN])
    return range(low, high + 1, step)


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names[text]
    if not text.isdigit():
        raise CronError("cron_syntax", part=field.name, value=text[:_SHOWN])
    number = int(text) if len(text) <= _DIGITS_MAX else -1
    if not field.low <= number <= field.high:
        raise CronError("cron_value", part=field.name, value=text[:_SHOWN], min=field.low, max=field.high)
    return number
