"""Refusals in the words of the real server's authorizer: who may not do what to which resource, or at which path."""

from dataclasses import dataclass

from clusters.simulated.errors import ApiError
from clusters.simulated.failures import Act

ANONYMOUS = "system:anonymous"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Wish:
    """An act on a resource, and the object's name, empty for all of them."""

    act: Act
    name: str = ""


def wish_of(method: str, path: str, *, watches: bool = False) -> Wish | None:
    """What a request wants, told by its path alone: it does not matter whether the resource exists.

    None for a path that is no resource's.
    """
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        return _of_resource(method, "", parts[2:], watches=watches)
    if len(parts) >= 4 and parts[0] == "apis":
        return _of_resource(method, parts[1], parts[3:], watches=watches)
    return None


def refusal(user: str, method: str, path: str, *, watches: bool = False) -> ApiError:
    """The 403 of a request."""
    wish = wish_of(method, path, watches=watches)
    if wish is None:
        return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {method.lower()} path "{path}"', {})
    act, plural = wish.act, wish.act.resource.partition("/")[0]
    where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    why = f'User "{user}" cannot {act.verb} resource "{act.resource}" in API group "{act.group}" {where}'
    what = f"{plural}.{act.group}" if act.group else plural
    details = {"name": wish.name, "group": act.group, "kind": plural}
    return ApiError(
        403,
        "Forbidden",
        f'{what} "{wish.name}" is forbidden: {why}' if wish.name else f"{what} is forbidden: {why}",
        {key: value for key, value in details.items() if value},
    )


def _of_resource(method: str, group: str, parts: list[str], *, watches: bool) -> Wish:
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 1 else ""
    if namespace and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        parts = parts[2:]
    plural, name, subresource = [*parts, "", ""][:3]
    resource = f"{plural}/{subresource}" if subresource else plural
    return Wish(Act(_verb(method, name, watches=watches), group, resource, namespace), name)


def _verb(method: str, name: str, *, watches: bool) -> str:
    verb = _VERBS.get(method, "get")
    if name:
        return verb
    return {"get": "watch" if watches else "list", "delete": "deletecollection"}.get(verb, verb)
