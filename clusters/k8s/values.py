"""What crosses the door to a cluster: raw JSON, and one error for each kind of answer that is not one."""

# ruff: noqa: N818 -- the errors are named as Kubernetes names the reasons of its answers

import re
from collections.abc import Mapping
from typing import Any

# An object of the Kubernetes API as it came over the wire.
JsonObject = dict[str, Any]


class GatewayError(Exception):
    """A cluster did not do what was asked. `status` is the HTTP status, 0 when there was no answer."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        self.message = message
        self.status = status
        self.reason = reason
        super().__init__(message)


class NotFound(GatewayError):
    """No object of that name (404)."""


class AlreadyExists(GatewayError):
    """An object of that name exists (409)."""


class Conflict(GatewayError):
    """A precondition did not hold: another uid or another version (409)."""


class Invalid(GatewayError):
    """The object breaks a rule of the API (422)."""


class StateMoved(Invalid):
    """A `test` of a JSON patch failed (422). Read again before deciding: the answer does not say which one."""


class Refused(GatewayError):
    """Forbidden or malformed (403, 400 and the like): quota, admission or a missing right said no."""


class RightMissing(Refused):
    """The portal's account lacks the right (403). A server that has just started says so too, for some seconds."""


class Gone(GatewayError):
    """The resource version or the page of a list expired (410): list again."""


class Unreachable(GatewayError):
    """No usable answer: time-out, broken connection, 401, 429 or 5xx. Nothing is known; try again later."""


_BY_STATUS: Mapping[int, type[GatewayError]] = {
    # An expired token says nothing about the object that was asked for.
    401: Unreachable,
    404: NotFound,
    408: Unreachable,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Unreachable,
}


# The words of the authorizer; those of admission and quota name the object instead.
_LACKS_RIGHT = re.compile(r'is forbidden: User "[^"]*" cannot |^forbidden: User "[^"]*" cannot ')


# The server's own word, "Unauthorized", tells nobody what to do.
_NOT_KNOWN = "the cluster does not accept the portal's token (401 Unauthorized): register a valid one"


def error_of(status: int, body: Mapping[str, Any], *, is_patch: bool = False) -> GatewayError:
    """Return the error for an answer of a cluster; `body` is its `Status` object, or empty."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or f"the cluster answered {status}")
    if status == 401:
        message = _NOT_KNOWN
    if status == 403 and _LACKS_RIGHT.search(message):
        return RightMissing(message, status=status, reason=reason)
    return _class_of(status, reason, body, is_patch=is_patch)(message, status=status, reason=reason)


def _class_of(status: int, reason: str, body: Mapping[str, Any], *, is_patch: bool) -> type[GatewayError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    causes = (body.get("details") or {}).get("causes") or []
    if status == 422 and is_patch and not any(cause.get("field") for cause in causes):
        # A broken rule names its field; a failed test is answered by a bare 422.
        return StateMoved
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Refused if 400 <= status < 500 else Unreachable
