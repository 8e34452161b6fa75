"""Refusals in the words of the real server's authorizer: who may not do what to which resource, or at which path."""

from clusters.simulated.errors import ApiError

ANONYMOUS = "system:anonymous"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def refusal(user: str, method: str, path: str, *, watches: bool = False) -> ApiError:
    """The 403 of a request, told by its path alone: it does not matter whether the resource exists."""
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        return _of_resource(user, method, "", parts[2:], watches=watches)
    if len(parts) >= 4 and parts[0] == "apis":
        return _of_resource(user, method, parts[1], parts[3:], watches=watches)
    message = f'forbidden: User "{user}" cannot {method.lower()} path "{path}"'
    return ApiError(403, "Forbidden", message, {})


def _of_resource(user: str, method: str, group: str, parts: list[str], *, watches: bool) -> ApiError:
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 1 else ""
    if namespace and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        parts = parts[2:]
    plural, name, subresource = [*parts, "", ""][:3]
    resource = f"{plural}/{subresource}" if subresource else plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    why = f'User "{user}" cannot {_verb(method, name, watches=watches)} resource "{resource}" in API group "{group}" '
    what = f"{plural}.{group}" if group else plural
    details = {"name": name, "group": group, "kind": plural}
    return ApiError(
        403,
        "Forbidden",
        f'{what} "{name}" is forbidden: {why}{where}' if name else f"{what} is forbidden: {why}{where}",
        {key: value for key, value in details.items() if value},
    )


def _verb(method: str, name: str, *, watches: bool) -> str:
    verb = _VERBS.get(method, "get")
    if name:
        return verb
    return {"get": "watch" if watches else "list", "delete": "deletecollection"}.get(verb, verb)
