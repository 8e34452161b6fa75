"""Names, labels, annotations and finalizers."""

import json
import re
from collections.abc import Iterator

from clusters.simulated.errors import Cause
from clusters.simulated.resources import Obj, Resource

_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_SERVICE_LABEL = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_NAME_PART = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def metadata_causes(resource: Resource, obj: Obj) -> Iterator[Cause]:
    meta = obj["metadata"]
    yield from _name_causes(resource, meta.get("name", ""))
    yield from label_causes(meta.get("labels") or {}, "metadata.labels")
    for key in meta.get("annotations") or {}:
        yield from key_causes(key, "metadata.annotations")
    size = sum(len(key) + len(value) for key, value in (meta.get("annotations") or {}).items())
    if size > 262144:
        message = "may not be more than 262144 bytes"
        yield Cause("metadata.annotations", "FieldValueTooLong", f"Too long: {message}")
    for finalizer in meta.get("finalizers") or ():
        yield from key_causes(finalizer, "metadata.finalizers")


def label_causes(labels: dict[str, str], path: str) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from key_causes(key, path)
        if len(value) > 63:
            yield invalid_value(path, value, "must be no more than 63 bytes")
        elif not _VALUE.match(value):
            yield invalid_value(path, value, _VALUE_TEXT)


def key_causes(key: str, path: str) -> Iterator[Cause]:
    """A qualified name: an optional DNS prefix, a slash, and a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.match(prefix)):
        yield invalid_value(path, key, f"prefix part {_SUBDOMAIN_TEXT}")
    if len(name) > 63:
        yield invalid_value(path, key, "name part must be no more than 63 bytes")
    elif not _NAME_PART.match(name):
        yield invalid_value(path, key, _KEY_TEXT)


def dns_label_causes(value: str, path: str) -> Iterator[Cause]:
    if len(value) > 63:
        yield invalid_value(path, value, "must be no more than 63 bytes")
    elif not _LABEL.match(value):
        yield invalid_value(path, value, _LABEL_TEXT)


def invalid_value(path: str, value: object, text: str) -> Cause:
    shown = json.dumps(value, separators=(",", ":")) if isinstance(value, (str, dict)) else str(value)
    return Cause(path, "FieldValueInvalid", f"Invalid value: {shown}: {text}")


def required(path: str, text: str = "") -> Cause:
    return Cause(path, "FieldValueRequired", f"Required value: {text}" if text else "Required value")


def forbidden_field(path: str, text: str) -> Cause:
    return Cause(path, "FieldValueForbidden", f"Forbidden: {text}")


def immutable(path: str, value: object) -> Cause:
    return invalid_value(path, value, "field is immutable")


def unsupported(path: str, value: object, supported: tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{each}"' for each in supported)
    return Cause(path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')


def _name_causes(resource: Resource, name: str) -> Iterator[Cause]:
    path = "metadata.name"
    if not name:
        yield required(path, "name or generateName is required")
    elif resource.kind == "Service":
        if len(name) > 63 or not _SERVICE_LABEL.match(name):
            yield invalid_value(path, name, _SERVICE_TEXT)
    elif resource.kind == "Namespace":
        yield from dns_label_causes(name, path)
    elif len(name) > 253:
        yield invalid_value(path, name, "must be no more than 253 bytes")
    elif not _SUBDOMAIN.match(name):
        yield invalid_value(path, name, _SUBDOMAIN_TEXT)
