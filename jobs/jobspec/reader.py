"""Reads plain values field by field, collects every fault and never raises, whatever the document holds."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from jobs.jobspec.problem import Problem, shown
from jobs.jobspec.syntax import Text

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=str)

# A refused document shall not cost more than a good one: a list of ten thousand unknown keys is told in ten.
UNKNOWN_SHOWN = 10
LONGEST_GUESS = 64
LARGEST_FIGURE = 2**63 - 1

_SURROGATE = re.compile("[\ud800-\udfff]")


class Reader:
    """One mapping of a document: `text("name", NAME)` gives the value or its absence and notes what is wrong.

    Null and the empty text count as absent. `close` reports the keys that nobody asked for, with code `unknown`.
    """

    def __init__(
        self,
        values: Mapping[str, object],
        problems: list[Problem],
        path: str = "",
        *,
        unknown: str = "unknown_field",
    ) -> None:
        self._values = values
        self._problems = problems
        self._path = path
        self._unknown = unknown
        self._known: list[str] = []

    @property
    def is_clean(self) -> bool:
        """Whether nothing wrong was found so far, anywhere in the document."""
        return not self._problems

    def has(self, key: str) -> bool:
        """Whether a value was given."""
        return self._raw(key) is not None

    def is_null(self, key: str) -> bool:
        """Whether the key was given as null: "none", not "the default"."""
        return key in self._values and self._values[key] is None

    def value(self, key: str) -> object | None:
        """The value as it is, for a reader further on."""
        return self._raw(key)

    def refuse(self, key: str, code: str, **numbers: int | str) -> None:
        """Note a fault of this field."""
        self._problems.append(Problem(field=self._at(key), code=code, numbers=numbers))

    def require(self, key: str, value: T | None, *, instead: T) -> T:
        """The value, or `instead` with a fault when nothing was given."""
        if value is None and not self.has(key):
            self.refuse(key, "required")
        return instead if value is None else value

    def text(self, key: str, rule: Text) -> str | None:
        """A text that keeps the rule."""
        value = self._raw(key)
        return None if value is None else self._text(self._at(key), value, rule)

    def quantity(self, key: str, rule: Text) -> str | None:
        """A quantity as text; numbers are taken as they would be written ("16" for 16)."""
        value = self._raw(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_FIGURE:
            value = str(value)
        return None if value is None else self._text(self._at(key), value, rule)

    def whole(self, key: str, low: int, high: int) -> int | None:
        """A whole number within the limits, both included."""
        value = self._raw(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong_type(self._at(key), value, "whole number")
            return None
        if value < low:
            self.refuse(key, "too_small", value=max(value, -LARGEST_FIGURE), min=low)
            return None
        if value > high:
            self.refuse(key, "too_big", value=min(value, LARGEST_FIGURE), max=high)
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self._raw(key)
        if value is None or isinstance(value, bool):
            return value
        self._wrong_type(self._at(key), value, "true or false")
        return None

    def choice(self, key: str, choices: Iterable[ChoiceT]) -> ChoiceT | None:
        """One of the choices."""
        value = self._raw(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self._wrong_type(self._at(key), value, "text")
            return None
        known = tuple(choices)
        for choice in known:
            if choice == value:
                return choice
        self.refuse(key, "bad_choice", value=shown(value), choices=", ".join(filter(None, known)))
        return None

    def texts(self, key: str, rule: Text, *, most: int, total: int | None = None) -> tuple[str, ...]:
        """A list of texts, in its order; `total` limits the characters of all together."""
        items = self._items(key, most)
        read = [self._text(f"{self._at(key)}[{index}]", item, rule) for index, item in enumerate(items)]
        texts = tuple(text for text in read if text is not None)
        self._check_total(key, sum(map(len, texts)), total)
        return texts

    def names(self, key: str, rule: Text, *, most: int) -> tuple[str, ...]:
        """A list of texts, none empty, none twice."""
        texts = self.texts(key, rule, most=most)
        for index, text in enumerate(texts):
            if text in texts[:index]:
                self.refuse(f"{key}[{index}]", "duplicate", value=shown(text))
        return texts

    def pairs(self, key: str, name: Text, value: Text, *, most: int, total: int | None = None) -> dict[str, str]:
        """A map from text to text, in its order; `total` limits the characters of all together."""
        given = self._mapping(key)
        if len(given) > most:
            self.refuse(key, "too_many", count=len(given), max=most)
            return {}
        read: dict[str, str] = {}
        for given_name, given_value in given.items():
            path = f"{self._at(key)}.{shown(given_name) if isinstance(given_name, str) else '?'}"
            read_name = self._text(path, given_name, name)
            read_value = self._text(path, given_value, value)
            if read_name is not None and read_value is not None:
                read[read_name] = read_value
        self._check_total(key, sum(len(name) + len(value) for name, value in read.items()), total)
        return read

    def part(self, key: str, build: Callable[["Reader"], T]) -> T | None:
        """A nested mapping, read by `build`."""
        value = self._raw(key)
        return None if value is None else self._part(self._at(key), value, build)

    def parts(self, key: str, build: Callable[["Reader"], T], *, most: int) -> tuple[T, ...]:
        """A list of mappings, each read by `build`."""
        items = self._items(key, most)
        read = [self._part(f"{self._at(key)}[{index}]", item, build) for index, item in enumerate(items)]
        return tuple(part for part in read if part is not None)

    def close(self) -> None:
        """Report the keys that no field asked for, with the nearest known one."""
        unknown = [key for key in self._values if key not in self._known]
        for key in unknown[:UNKNOWN_SHOWN]:
            self._report_unknown(key)
        if len(unknown) > UNKNOWN_SHOWN:
            self.refuse("", "too_many_unknown_fields", count=len(unknown))

    def _raw(self, key: str) -> object | None:
        if key not in self._known:
            self._known.append(key)
        value = self._values.get(key)
        return None if value == "" else value

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path and key else self._path or key

    def _text(self, path: str, value: object, rule: Text) -> str | None:
        if not isinstance(value, str):
            self._wrong_type(path, value, "text")
            return None
        problem = _fault(path, value, rule)
        if problem is not None:
            self._problems.append(problem)
            return None
        return value

    def _items(self, key: str, most: int) -> list[object]:
        value = self._raw(key)
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self._wrong_type(self._at(key), value, "list")
            return []
        if len(value) > most:
            self.refuse(key, "too_many", count=len(value), max=most)
            return []
        return list(value)

    def _mapping(self, key: str) -> Mapping[object, object]:
        value = self._raw(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._wrong_type(self._at(key), value, "map")
            return {}
        return value

    def _part(self, path: str, value: object, build: Callable[["Reader"], T]) -> T | None:
        if not isinstance(value, Mapping):
            self._wrong_type(path, value, "map")
            return None
        before = len(self._problems)
        reader = Reader(value, self._problems, path, unknown=self._unknown)
        part = build(reader)
        reader.close()
        return part if len(self._problems) == before else None

    def _check_total(self, key: str, length: int, longest: int | None) -> None:
        if longest is not None and length > longest:
            self.refuse(key, "too_long", length=length, max=longest)

    def _wrong_type(self, path: str, value: object, expected: str) -> None:
        numbers = {"expected": expected, "given": type_name(value)}
        self._problems.append(Problem(field=path, code="wrong_type", numbers=numbers))

    def _report_unknown(self, key: object) -> None:
        if not isinstance(key, str):
            self.refuse("?", "wrong_type", expected="text", given=type_name(key))
            return
        nearest = difflib.get_close_matches(key[:LONGEST_GUESS], self._known, n=1)
        self.refuse(shown(key), self._unknown, **({"suggestion": nearest[0]} if nearest else {}))


def type_name(value: object) -> str:
    """The kind of a JSON value in the words that the messages use."""
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return "something else"


def _fault(path: str, value: str, rule: Text) -> Problem | None:
    if len(value) > rule.longest:
        return Problem(field=path, code="too_long", numbers={"length": len(value), "max": rule.longest})
    if "\0" in value:
        return Problem(field=path, code="nul_byte")
    if _SURROGATE.search(value):
        return Problem(field=path, code="bad_text")
    if rule.holds is not None and not rule.holds(value):
        return Problem(field=path, code=rule.code, numbers={"value": shown(value), "max": rule.longest})
    return None


# bool before int: True is an int for Python, never for a person.
_TYPE_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "true or false"),
    (int, "whole number"),
    (float, "number"),
    (str, "text"),
    ((list, tuple), "list"),
    (Mapping, "map"),
    (type(None), "nothing"),
)
