"""The part of RFC 6902 that the API server applies: add, remove, replace, test; written for the tests."""

import copy
from typing import Any


class TestFailedError(Exception):
    """A `test` operation did not hold: the API server answers 422."""

    __test__ = False


def apply(document: Any, operations: list[dict[str, Any]]) -> Any:
    """The patched copy of the document."""
    result = copy.deepcopy(document)
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        target = result
        for part in parents:
            target = _child(target, part)
        _apply_one(target, last, operation)
    return result


def _apply_one(target: Any, key: str, operation: dict[str, Any]) -> None:
    match operation["op"]:
        case "test":
            if _child(target, key) != operation["value"]:
                raise TestFailedError(operation["path"])
        case "add" if isinstance(target, list):
            target.insert(len(target) if key == "-" else int(key), operation["value"])
        case "add":
            target[key] = operation["value"]
        case "replace":
            _child(target, key)
            target[int(key) if isinstance(target, list) else key] = operation["value"]
        case "remove":
            del target[int(key) if isinstance(target, list) else key]


def _child(target: Any, key: str) -> Any:
    try:
        return target[int(key)] if isinstance(target, list) else target[key]
    except (KeyError, IndexError) as error:
        raise TestFailedError(key) from error
