"""Read the spaces of one cluster, compare, and apply: all that asks the cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import GatewayError, JsonObject, NotFound, RightMissing, Unreachable
from clusters.manifests import drift
from clusters.manifests.drift import Judgement

PLURALS: Mapping[str, str] = {
    "Namespace": "namespaces",
    "ResourceQuota": "resourcequotas",
    "LimitRange": "limitranges",
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Picture:
    """What is there, by kind, namespace and name; and why a kind could not be read."""

    found: Mapping[tuple[str, str, str], JsonObject]
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """One object: how it stands, what went wrong when it was read or applied, and whether it was applied now."""

    kind: str
    name: str
    judgement: Judgement
    error: str = ""
    is_applied: bool = False


def read(gateway: Gateway) -> Picture:
    """List each kind once, over all namespaces. Raise Unreachable when the cluster does not answer."""
    found: dict[tuple[str, str, str], JsonObject] = {}
    unread: dict[str, str] = {}
    for kind, plural in PLURALS.items():
        try:
            items = gateway.list(plural)["items"]
        except (RightMissing, NotFound) as missing:  # not found: a server that does not know the kind
            unread[kind] = missing.message[:_LONGEST]
            continue
        found |= {_key(kind, item): item for item in items}
    return Picture(found, unread)


def judge(picture: Picture, wanted: Iterable[JsonObject], domain: str) -> list[Seen]:
    """Compare each object with what is there."""
    return [_judged(picture, body, domain) for body in wanted]


def mend(
    gateway: Gateway, picture: Picture, wanted: Sequence[JsonObject], states: frozenset[str], domain: str
) -> Iterator[Seen]:
    """Apply the objects that are in one of the states, and yield how each one stands then. Raise Unreachable."""
    for body in wanted:
        seen = _judged(picture, body, domain)
        yield _mended(gateway, picture, body, seen, domain) if seen.judgement.state in states else seen


def _judged(picture: Picture, body: JsonObject, domain: str) -> Seen:
    kind, name = body["kind"], body["metadata"]["name"]
    if kind in picture.unread:
        return Seen(kind, name, Judgement("unknown"), picture.unread[kind])
    return Seen(kind, name, drift.judge(body, picture.found.get(_key(kind, body)), domain))


def _mended(gateway: Gateway, picture: Picture, body: JsonObject, seen: Seen, domain: str) -> Seen:
    """Apply one object. What the cluster refuses is told beside it and stops no other."""
    try:
        stored = _applied(gateway, body, picture.found.get(_key(seen.kind, body)), domain)
    except Unreachable:
        raise
    except GatewayError as error:
        return replace(seen, error=error.message[:_LONGEST])
    return replace(seen, judgement=drift.judge(body, stored, domain), is_applied=True)


def _applied(gateway: Gateway, body: JsonObject, found: JsonObject | None, domain: str) -> JsonObject:
    plural, namespace, name = PLURALS[body["kind"]], body["metadata"].get("namespace", ""), body["metadata"]["name"]
    if found is None:
        return gateway.create(plural, namespace, body)
    if drift.must_be_recreated(body, found):
        gateway.delete(plural, namespace, name, uid=found["metadata"]["uid"], propagation="Background")
        return gateway.create(plural, namespace, body)
    return gateway.patch_json(plural, namespace, name, drift.mend(body, found, domain))


def _key(kind: str, body: JsonObject) -> tuple[str, str, str]:
    return kind, body["metadata"].get("namespace", ""), body["metadata"]["name"]
