"""How an object on a cluster differs from what we rendered, and the patch that mends it.

Each object of ours carries the fingerprint of what was rendered last. So what differs is told apart: the wish has
changed since (`outdated`), or somebody else has changed the object (`altered`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from clusters.manifests import names
from clusters.manifests.hashing import spec_hash
from clusters.manifests.values import Json

State = Literal["in_step", "missing", "outdated", "altered", "unknown"]
# Not of the wish: who it is, and what the server says about it.
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata", "status"})
_MARKS = ("pod-security.kubernetes.io/",)
# What cannot change on an object that is there: it is deleted and created anew.
_FIXED: Mapping[str, frozenset[str]] = {"PriorityClass": frozenset({"value", "preemptionPolicy"})}
# Only its labels are ours.
_LABELS_ALONE = frozenset({"Namespace"})
_LONGEST = 80
_MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: where, what it should be, what it is; a missing one is empty."""

    path: str
    wanted: str
    found: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one object stands."""

    state: State
    differences: tuple[Difference, ...] = ()
    is_recreated: bool = False


def stamped(body: Json, domain: str) -> Json:
    """The object with its fingerprint as an annotation."""
    metadata = body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), _key(domain): fingerprint(body, domain)}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def fingerprint(body: Mapping[str, Any], domain: str) -> str:
    """SHA-256 of what an object says as far as that is ours, whoever stored it: 64 hex digits."""
    metadata = body["metadata"]
    told = {"name": metadata["name"], "namespace": metadata.get("namespace", ""), **_content(body)}
    return spec_hash([{**told, "labels": _labels(body, domain)}], domain)


def judge(wanted: Json, found: Json | None, domain: str) -> Judgement:
    """Compare what is wanted with what is there; `found` None: nothing of that name."""
    if found is None:
        return Judgement("missing")
    found = {**found, "kind": wanted["kind"]}  # an item of a list comes without
    differences = tuple(_differences(_told(wanted, domain), _told(found, domain), ""))[:_MOST_FIELDS]
    if not differences:
        return Judgement("in_step")
    mark = (found["metadata"].get("annotations") or {}).get(_key(domain))
    state: State = "outdated" if mark == fingerprint(found, domain) else "altered"
    return Judgement(state, differences, is_recreated=must_be_recreated(wanted, found))


def must_be_recreated(wanted: Json, found: Json) -> bool:
    """Whether a field differs that a server does not let change."""
    return any(wanted.get(key) != found.get(key) for key in _FIXED.get(wanted["kind"], ()))


def mend(wanted: Json, found: Json, domain: str) -> list[Json]:
    """The JSON patch that makes exactly this object what is wanted; what is not ours stays."""
    found = {**found, "kind": wanted["kind"]}
    metadata = found["metadata"]
    ops: list[Json] = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
    ops += [{"op": "add", "path": f"/metadata/{each}", "value": {}} for each in _MAPS if metadata.get(each) is None]
    ops += _map_ops("/metadata/labels", _labels(wanted, domain), _labels(found, domain))
    mark = wanted["metadata"]["annotations"][_key(domain)]
    ops.append({"op": "add", "path": f"/metadata/annotations/{_escaped(_key(domain))}", "value": mark})
    return ops + _map_ops("", _content(wanted), _content(found))


_MAPS = ("labels", "annotations")


def _map_ops(path: str, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[Json]:
    changed = [key for key in sorted(wanted) if key not in found or found[key] != wanted[key]]
    gone = sorted(found.keys() - wanted.keys())
    return [
        *({"op": "add", "path": f"{path}/{_escaped(key)}", "value": wanted[key]} for key in changed),
        *({"op": "remove", "path": f"{path}/{_escaped(key)}"} for key in gone),
    ]


def _told(body: Mapping[str, Any], domain: str) -> Json:
    return {"labels": _labels(body, domain), **_content(body)}


def _content(body: Mapping[str, Any]) -> Json:
    if body["kind"] in _LABELS_ALONE:
        return {}
    return {key: value for key, value in body.items() if key not in _ENVELOPE and value is not None}


def _labels(body: Mapping[str, Any], domain: str) -> dict[str, str]:
    ours = (f"{domain}/", *_MARKS)
    labels = body["metadata"].get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith(ours) or key == names.MANAGED_BY_LABEL}


def _differences(wanted: Any, found: Any, path: str) -> Iterator[Difference]:
    """Each field that differs, by its path. Lists are told whole: their order means something."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key in sorted({*wanted, *found}):
            below = f"{path}.{key}" if path else key
            yield from _differences(wanted.get(key), found.get(key), below)
    elif wanted != found:
        yield Difference(path, _brief(wanted), _brief(found))


def _brief(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _key(domain: str) -> str:
    return names.label(domain, "spec-hash")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
