"""API errors in the words of the real server: each is a `Status` object with a code and a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusters.simulated.resources import Resource


@dataclass(frozen=True, slots=True)
class Cause:
    """One refused field, as `Status.details.causes` lists it."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A refused request; `status()` is the body that the client gets."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if not self.reason:
            del body["reason"]
        if self.details is not None:
            body["details"] = self.details
        return body


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unknown_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def not_found(resource: Resource, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(resource, name))


def conflict(resource: Resource, name: str, why: str = "") -> ApiError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def uid_mismatch(resource: Resource, name: str, wanted: str, found: str) -> ApiError:
    """The answer to an update of another object of that name."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, why)


def deleted_uid_mismatch(resource: Resource, name: str, wanted: str, found: str) -> ApiError:
    """The answer to a deletion, which names the kind where other answers name its plural."""
    kind = _qualified_kind(resource)
    why = f"the UID in the precondition ({wanted}) does not match the UID in record ({found})"
    message = f'Operation cannot be fulfilled on {kind} "{name}": {why}. '
    message += "The object might have been deleted and then recreated"
    return ApiError(409, "Conflict", message, {**_details(resource, name), "kind": resource.kind})


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _details(resource, name))


def terminating(resource: Resource, name: str, namespace: str) -> ApiError:
    """The answer to a create in a namespace that is being deleted."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refused = forbidden(resource, name, why)
    text = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}
    refused.details = {**_details(resource, name), "causes": [cause]}
    return refused


def no_version(text: str) -> ApiError:
    """A resource version that is no number: the server takes the mistake for one of its own."""
    why = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    parsing = f'strconv.ParseUint: parsing "{text}": {why}'
    return ApiError(500, "", f'resourceVersion: Invalid value: "{text}": {parsing}')


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    listed = str(causes[0]) if len(causes) == 1 else "[" + ", ".join(map(str, causes)) + "]"
    details = {
        **_details(resource, name),
        "kind": resource.kind,
        "causes": [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes],
    }
    return ApiError(422, "Invalid", f'{_qualified_kind(resource)} "{name}" is invalid: {listed}', details)


def invalid_policy(policy: str) -> ApiError:
    """The answer to a deletion with an unknown propagation policy."""
    known = '"Foreground", "Background", "Orphan", "nil"'
    text = f'Unsupported value: "{policy}": supported values: {known}'
    cause = Cause("propagationPolicy", "FieldValueNotSupported", text)
    details = {
        "group": "meta.k8s.io",
        "kind": "DeleteOptions",
        "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field}],
    }
    return ApiError(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {cause}', details)


def patch_failed() -> ApiError:
    """The 422 of a JSON patch that does not apply. The real server does not tell which operation it was, nor why."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def unsupported_media() -> ApiError:
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)


def _qualified_kind(resource: Resource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def _details(resource: Resource, name: str) -> dict[str, Any]:
    found = {"name": name, "kind": resource.plural}
    return {**found, "group": resource.group} if resource.group else found
