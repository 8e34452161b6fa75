"""Cron texts as the CronJob controller reads them, and when they come due."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_SHORT = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {
        name: at
        for at, name in enumerate(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
        )
    },
    {name: at for at, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])},
)
_PART = re.compile(r"([*?]|[0-9a-z]+(?:-[0-9a-z]+)?)(?:/([0-9]{1,9}))?")
_YEARS = 5
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """Sets of minutes, hours, days, months and week days; a day field that is a star does not widen the other."""

    fields: tuple[frozenset[int], ...]
    stars: tuple[bool, bool]

    def is_due_on(self, wall: datetime) -> bool:
        """Whether the day fits."""
        in_month, in_week = wall.day in self.fields[2], (wall.weekday() + 1) % 7 in self.fields[4]
        fits = (in_month and in_week) if any(self.stars) else (in_month or in_week)
        return fits and wall.month in self.fields[3]


def parse(text: str) -> Cron:
    """ValueError in the words of the server's own library."""
    words = _SHORT.get(text, text).split()
    if text.startswith("@") and text not in _SHORT:
        raise ValueError(f"unrecognized descriptor: {text}")
    if len(words) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    read = [_field(word.lower(), index) for index, word in enumerate(words)]
    return Cron(tuple(numbers for numbers, _star in read), (read[2][1], read[4][1]))


def next_due(cron: Cron, zone: str, after: float) -> float | None:
    """The first moment after `after` (seconds since 1970) whose local time fits; None: not within five years."""
    place = ZoneInfo(zone)
    moment = datetime.fromtimestamp(after - after % 60, UTC) + _MINUTE
    end = moment + timedelta(days=366 * _YEARS)
    while moment < end:
        wall = moment.astimezone(place)
        if not cron.is_due_on(wall) or wall.hour not in cron.fields[1]:
            moment += timedelta(minutes=60 - wall.minute)
        elif wall.minute not in cron.fields[0]:
            moment += _MINUTE
        else:
            return moment.timestamp()
    return None


def _field(word: str, index: int) -> tuple[frozenset[int], bool]:
    """The numbers, and whether the field is a star."""
    numbers: set[int] = set()
    star = False
    for part in word.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"failed to parse int from {part}")
        span, step = match[1], int(match[2] or 1)
        if step == 0:
            raise ValueError(f"step of range should be a positive number: {part}")
        low, high = _span(span, index, steps=match[2] is not None)
        star |= span in ("*", "?") and step == 1
        numbers.update(range(low, high + 1, step))
    return frozenset(numbers), star


def _span(span: str, index: int, *, steps: bool) -> tuple[int, int]:
    least, most = _LIMITS[index]
    if span in ("*", "?"):
        return least, most
    low_text, dash, high_text = span.partition("-")
    low = _number(low_text, index)
    high = _number(high_text, index) if dash else most if steps else low
    if low < least:
        raise ValueError(f"beginning of range ({low}) below minimum ({least}): {span}")
    if high > most:
        raise ValueError(f"end of range ({high}) above maximum ({most}): {span}")
    if low > high:
        raise ValueError(f"beginning of range ({low}) beyond end of range ({high}): {span}")
    return low, high


def _number(text: str, index: int) -> int:
    if text in _NAMES[index]:
        return _NAMES[index][text]
    if not text.isdigit():
        raise ValueError(f"failed to parse int from {text}: strconv.Atoi: parsing {text!r}: invalid syntax")
    return int(text)
