"""The fingerprint by which a worker knows an object of its own attempt again, whoever created it."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from clusters.manifests import names
from clusters.manifests.values import Json


def spec_hash(objects: Sequence[Mapping[str, object]], domain: str) -> str:
    """SHA-256 of the objects, 64 hex digits; the same for any order of keys and for any epoch.

    The epoch is left out: the worker that takes over an attempt renders it with a new one and must still find
    that the object is the one it wants.
    """
    passing = {names.label(domain, "epoch"), names.label(domain, "spec-hash")}
    text = json.dumps([_without(item, passing) for item in objects], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def with_spec_hash(body: Json, domain: str) -> Json:
    """The object with its fingerprint as an annotation."""
    metadata = body["metadata"]
    if not isinstance(metadata, dict):
        raise TypeError("an object needs metadata")
    annotations = {
        **metadata.get("annotations", {}),
        names.label(domain, "spec-hash"): spec_hash([body], domain),
    }
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def owned_by(body: Json, owner: Json) -> Json:
    """The object as a dependent of `owner`, as the API server returned that: it goes when its owner goes."""
    # No blockOwnerDeletion: it would need rights on finalizers that the portal does not have.
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def _without(value: object, keys: set[str]) -> object:
    if isinstance(value, Mapping):
        return {key: _without(item, keys) for key, item in value.items() if key not in keys}
    if isinstance(value, list):
        return [_without(item, keys) for item in value]
    return value
