"""The three kinds of patches, without a server."""

from typing import Any

import pytest

from clusters.simulated.errors import ApiError
from clusters.simulated.patch import STRATEGIC_PATCH, apply_json_patch, apply_patch, merge


@pytest.mark.parametrize(
    ("operations", "wanted"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": {}}], {"a": {}}),
        ([{"op": "move", "from": "/a/0", "path": "/c"}], {"a": [2], "c": 1}),
        ([{"op": "copy", "from": "/a", "path": "/c"}], {"a": [1, 2], "c": [1, 2]}),
        ([{"op": "test", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/x~1y~0z", "value": 1}], {"a": [1, 2], "x/y~z": 1}),
    ],
)
def test_operations_do_what_they_say(operations: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    assert apply_json_patch({"a": [1, 2]}, operations) == wanted


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/0", "value": True},
        {"op": "test", "path": "/missing", "value": 1},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "remove", "path": "/a/7"},
        {"op": "add", "path": "/a/7", "value": 1},
        {"op": "add", "path": "/missing/deep", "value": 1},
        {"op": "replace", "path": "", "value": 5},
    ],
)
def test_operations_that_do_not_apply_are_a_422(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        apply_json_patch({"a": [1, 2]}, [operation])

    assert refused.value.code == 422


def test_a_merge_patch_removes_by_null() -> None:
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"b": None}, "d": [1]}) == {"a": {"c": 2}, "d": [1]}


def test_a_strategic_patch_deletes_list_items_by_key() -> None:
    target = {"env": [{"name": "A", "value": "1"}, {"name": "B"}], "finalizers": ["x"]}
    patch = {"env": [{"name": "A", "$patch": "delete"}, {"name": "C"}], "finalizers": ["y"]}

    patched = apply_patch(STRATEGIC_PATCH, target, patch)

    assert patched == {"env": [{"name": "B"}, {"name": "C"}], "finalizers": ["x", "y"]}
