"""What differs between two documents, path by path, so that a run can be compared with the one it repeats."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Says where a document comes from, not what it asks for.
IGNORED = frozenset({"parent"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs; None stands for "not there"."""

    path: str
    before: object
    after: object


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return what differs, in the order of the newer document, what is gone at the end."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    changed = [Difference(path, old.get(path), value) for path, value in new.items() if old.get(path) != value]
    return changed + [Difference(path, value, None) for path, value in old.items() if path not in new]


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            if path or key not in IGNORED:
                yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from _leaves(part, f"{path}[{index}]")
    else:
        yield path, value
