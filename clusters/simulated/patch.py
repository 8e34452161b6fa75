"""JSON patch, JSON merge patch, and strategic merge patch for lists with a well-known merge key."""

from typing import Any

from clusters.simulated.errors import bad_request, patch_failed
from clusters.simulated.resources import Obj

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
SUPPORTED = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)

# List fields that a strategic merge joins by key instead of replacing them whole.
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "conditions": "type",
    "ownerReferences": "uid",
    "schedulingGates": "name",
    "imagePullSecrets": "name",
    "addresses": "type",
}
# Lists of plain values that are joined.
_MERGED_SETS = {"finalizers"}


def apply_patch(kind: str, target: Obj, patch: Any) -> Obj:
    """Changes `target` (a copy that belongs to the caller) by a patch of the media type `kind`."""
    if kind == JSON_PATCH:
        if not isinstance(patch, list):
            wanted = "Go value of type []handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: json: cannot unmarshal object into {wanted}")
        return apply_json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
    if kind == MERGE_PATCH:
        merged: Obj = merge(target, patch)
        return merged
    strategic: Obj = _strategic(target, patch)
    return strategic


def apply_json_patch(target: Obj, operations: list[Any]) -> Obj:
    document: Any = target
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request("Invalid JSON Patch")
        document = _apply_operation(document, operation)
    if not isinstance(document, dict):
        raise patch_failed()
    return document


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _apply_operation(document: Any, operation: Obj) -> Any:
    verb, path = operation.get("op"), operation["path"]
    if verb == "test":
        _test(document, path, operation.get("value"))
        return document
    if verb in ("add", "replace"):
        return _set(document, path, operation.get("value"), replace=verb == "replace")
    if verb == "remove":
        _remove(document, path)
        return document
    if verb in ("move", "copy"):
        source = str(operation.get("from"))
        value = _get(document, source)
        if verb == "move":
            _remove(document, source)
        return _set(document, path, value, replace=False)
    raise patch_failed()


def _test(document: Any, path: str, wanted: Any) -> None:
    try:
        found = _get(document, path)
    except KeyError:
        found = None
        if wanted is None:
            return
    if not _same(found, wanted):
        raise patch_failed()


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def _set(document: Any, path: str, value: Any, *, replace: bool) -> Any:
    if path == "":
        return value
    parent, last = _parent(document, path)
    if isinstance(parent, list):
        index = len(parent) if last == "-" and not replace else _index(parent, last, room=not replace)
        if replace:
            parent[index] = value
        else:
            parent.insert(index, value)
    elif isinstance(parent, dict):
        if replace and last not in parent:
            raise patch_failed()
        parent[last] = value
    else:
        raise patch_failed()
    return document


def _remove(document: Any, path: str) -> None:
    parent, last = _parent(document, path)
    if isinstance(parent, list):
        del parent[_index(parent, last, room=False)]
    elif isinstance(parent, dict) and last in parent:
        del parent[last]
    else:
        raise patch_failed()


def _parent(document: Any, path: str) -> tuple[Any, str]:
    above, _, last = path.rpartition("/")
    try:
        parent = _get(document, above)
    except KeyError:
        parent = None
    if parent is None:
        raise patch_failed()
    return parent, _unescape(last)


def _get(document: Any, path: str) -> Any:
    """Raises KeyError where nothing is at `path`."""
    found = document
    for token in path.split("/")[1:]:
        key = _unescape(token)
        if isinstance(found, list):
            if not key.isdigit() or int(key) >= len(found):
                raise KeyError(path)
            found = found[int(key)]
        elif isinstance(found, dict):
            found = found[key]
        else:
            raise KeyError(path)
    return found


def _index(held: list[Any], token: str, *, room: bool) -> int:
    if not token.isdigit() or int(token) > len(held) - (0 if room else 1):
        raise patch_failed()
    return int(token)


def _unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def _strategic(target: Any, patch: Any, field: str = "") -> Any:
    if isinstance(patch, dict):
        return _strategic_object(target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list) and isinstance(target, list):
        if field in _MERGE_KEYS:
            return _merge_list(target, patch, _MERGE_KEYS[field])
        if field in _MERGED_SETS:
            return target + [value for value in patch if value not in target]
    return patch


def _strategic_object(target: Obj, patch: Obj) -> Obj:
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            held = key.partition("/")[2]
            target[held] = [kept for kept in target.get(held) or () if kept not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = _strategic(target.get(key), value, key)
    return target


def _merge_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    merged = list(target)
    for item in patch:
        place = next((i for i, held in enumerate(merged) if held.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(item)
        else:
            merged[place] = _strategic(merged[place], item)
    return merged
