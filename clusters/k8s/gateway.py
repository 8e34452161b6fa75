"""The one door to a cluster: named acts on raw JSON objects, each one request with short time-outs."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack
from urllib.parse import quote

from clusters.k8s import documents, logs
from clusters.k8s.client import ByteStream, Client, Query
from clusters.k8s.connection import ClusterAccess, Connection
from clusters.k8s.documents import WHOLE, Event, Form, Item
from clusters.k8s.values import GatewayError, Gone, JsonObject, NotFound, Unreachable, error_of

# Where each kind lives, and whether in a namespace.
_PATHS: Mapping[str, tuple[str, bool]] = {
    "nodes": ("/api/v1", False),
    "namespaces": ("/api/v1", False),
    "pods": ("/api/v1", True),
    "services": ("/api/v1", True),
    "events": ("/api/v1", True),
    "persistentvolumeclaims": ("/api/v1", True),
    "jobs": ("/apis/batch/v1", True),
    "cronjobs": ("/apis/batch/v1", True),
    "deployments": ("/apis/apps/v1", True),
    "statefulsets": ("/apis/apps/v1", True),
    "replicasets": ("/apis/apps/v1", True),
    "podgroups": ("/apis/scheduling.k8s.io/v1beta1", True),
    "priorityclasses": ("/apis/scheduling.k8s.io/v1", False),
    "serviceaccounts": ("/api/v1", True),
    "resourcequotas": ("/api/v1", True),
    "limitranges": ("/api/v1", True),
    "networkpolicies": ("/apis/networking.k8s.io/v1", True),
    "mutatingadmissionpolicies": ("/apis/admissionregistration.k8s.io/v1", False),
    "mutatingadmissionpolicybindings": ("/apis/admissionregistration.k8s.io/v1", False),
    "validatingadmissionpolicies": ("/apis/admissionregistration.k8s.io/v1", False),
    "validatingadmissionpolicybindings": ("/apis/admissionregistration.k8s.io/v1", False),
}
Kept = TypeVar("Kept")
_ACCESS = "authorization.k8s.io/v1"
_MYSELF = "authentication.k8s.io/v1"
_PAGE = 500
# A list that changes faster than its pages are read starts over this often.
_LIST_TRIES = 3
# How much longer than the server's own end of a watch we wait before calling it dead.
_WATCH_GRACE_S = 10.0


class Gateway:
    """Talks to one cluster. Thread-safe. Every method may raise the errors of `clusters.k8s.values`."""

    def __init__(self, access: ClusterAccess) -> None:
        self._client = Client(Connection.of(access))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the kept connections."""
        self._client.close()

    def create(self, kind: str, namespace: str, body: JsonObject) -> JsonObject:
        """Create the object and return it as stored."""
        return self._client.call("POST", _path(kind, namespace), body=body)

    def rehearse(self, kind: str, namespace: str, body: JsonObject) -> JsonObject:
        """Return the object as it would be stored, all checks of the server made; nothing is created."""
        return self._client.call("POST", _path(kind, namespace), query={"dryRun": "All"}, body=body)

    def get(self, kind: str, namespace: str, name: str) -> JsonObject:
        """Return one object as it is now."""
        return self._client.call("GET", _path(kind, namespace, name))

    def patch_json(self, kind: str, namespace: str, name: str, ops: Sequence[JsonObject]) -> JsonObject:
        """Apply a JSON patch, all operations or none. Raise StateMoved when one of its tests fails."""
        return self._client.call(
            "PATCH",
            _path(kind, namespace, name),
            body=list(ops),
            content_type="application/json-patch+json",
        )

    def delete(self, kind: str, namespace: str, name: str, *, uid: str, propagation: str = "Foreground") -> None:
        """Ask for the deletion of exactly this object. Raise Conflict when the name has another uid by now.

        The propagation is always sent: without one, batch/v1 would orphan the pods of a Job.
        """
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": uid},
            "propagationPolicy": propagation,
        }
        self._client.call("DELETE", _path(kind, namespace, name), body=options)

    def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> JsonObject:
        """Return all objects and the list's own version: {"items": [...], "metadata": {"resourceVersion": v}}.

        The read is consistent (no version is sent), so what is missing from it does not exist.
        """
        items, version = self.read_list(kind, WHOLE, documents.unmanaged, namespace, labels=labels, fields=fields)
        return {"items": items, "metadata": {"resourceVersion": version}}

    def read_list(
        self,
        kind: str,
        form: Form[Item],
        read: Callable[[Item], Kept],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
    ) -> "tuple[builtins.list[Kept], str]":
        """Return what `read` keeps of each object, and the list's version: no more than a page is held as it came."""
        path = _path(kind, namespace)
        query: Query = {"labelSelector": labels, "fieldSelector": fields, "limit": _PAGE}
        for _try in range(_LIST_TRIES):
            try:
                return self._list_pages(path, query, form, read)
            except Gone:
                continue
        raise Unreachable(f"the list of {kind} expired {_LIST_TRIES} times while it was read")

    def watch(
        self,
        kind: str,
        form: Form[Item],
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        timeout_s: int = 60,
    ) -> "WatchStream[Item]":
        """Open a stream of changes after `resource_version`; it ends by itself after about `timeout_s`.

        Raise Gone, at the start or in the stream, when the version is too old: list again.
        """
        if not resource_version or resource_version == "None":
            # The API server would replay the present, or the past, as if it were news.
            raise ValueError("a watch starts from the version of a list")
        query: Query = {
            "watch": True,
            "resourceVersion": resource_version,
            "allowWatchBookmarks": True,
            "timeoutSeconds": timeout_s,
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        read_timeout_s = timeout_s + _WATCH_GRACE_S
        return WatchStream(self._client.stream(_path(kind, None), query=query, read_timeout_s=read_timeout_s), form)

    def logs(self, namespace: str, pod: str, **options: Unpack[logs.LogOptions]) -> ByteStream:
        """Open the log of a container; iterate it for chunks of bytes, close it from any thread."""
        path = _path("pods", namespace, pod) + "/log"
        return self._client.stream(path, query=logs.query(options), read_timeout_s=logs.read_timeout_s(options))

    def version(self) -> JsonObject:
        """Return what the server says of itself: gitVersion, major, minor."""
        return self._client.call("GET", "/version")

    def date(self) -> str:
        """Return the server's time of day as an HTTP date, in whole seconds; empty when it tells none."""
        return self._client.date("/version")

    def is_ready(self) -> bool:
        """Return whether the server says that it has read all that it decides by, the rights of accounts among it."""
        try:
            self._client.date("/readyz")  # answered by a word, not by JSON
        except GatewayError:
            return False
        return True

    def group_versions(self) -> frozenset[str]:
        """Return which API groups the server knows: "batch/v1", ... The core group is not among them."""
        groups = self._client.call("GET", "/apis").get("groups") or []
        return frozenset(each["groupVersion"] for group in groups for each in group.get("versions") or [])

    def kinds(self, group_version: str) -> frozenset[str]:
        """Return the kinds of one API group by their plural names; none when the server does not know it."""
        try:
            listed = self._client.call("GET", f"/apis/{quote(group_version)}")
        except NotFound:
            return frozenset()
        return frozenset(each["name"] for each in listed.get("resources") or [])

    def may(self, attributes: JsonObject) -> bool:
        """Ask whether our account may do this: verb, group, resource, subresource, namespace, name."""
        body = {"apiVersion": _ACCESS, "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
        answer = self._client.call("POST", f"/apis/{_ACCESS}/selfsubjectaccessreviews", body=body)
        return bool((answer.get("status") or {}).get("allowed"))

    def user_name(self) -> str:
        """Return the name under which the server knows our account."""
        body = {"apiVersion": _MYSELF, "kind": "SelfSubjectReview"}
        answer = self._client.call("POST", f"/apis/{_MYSELF}/selfsubjectreviews", body=body)
        return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")

    def request_token(self, namespace: str, account: str, *, seconds: int) -> JsonObject:
        """Return a new token of a service account and when it ends: {"token": ..., "expirationTimestamp": ...}."""
        body = {"apiVersion": _MYSELF, "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
        answer = self._client.call("POST", _path("serviceaccounts", namespace, account) + "/token", body=body)
        return dict(answer.get("status") or {})

    def _list_pages(
        self, path: str, query: Query, form: Form[Item], read: Callable[[Item], Kept]
    ) -> "tuple[builtins.list[Kept], str]":
        items: builtins.list[Kept] = []
        token = ""
        while True:
            page = self._client.read(path, form.page, query={**query, "continue": token})
            items += [read(item) for item in page.items or ()]
            token = page.metadata.token or ""
            if not token:
                return items, page.metadata.version or ""


class WatchStream(Generic[Item]):
    """Raw watch events, bookmarks included. Any thread may close it; the reader then ends."""

    def __init__(self, stream: ByteStream, form: Form[Item]) -> None:
        self._stream = stream
        self._form = form

    def __iter__(self) -> Iterator[Event[Item]]:
        rest = b""
        for chunk in self._stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield _event(line, self._form)

    def close(self) -> None:
        """End the stream."""
        self._stream.close()


def gateway_for(access: ClusterAccess) -> Gateway:
    """Return this process's gateway to a cluster, made once for each server and token."""
    return _kept_gateway(Connection.of(access))


@lru_cache(maxsize=128)
def _kept_gateway(connection: Connection) -> Gateway:
    return Gateway(connection)


def _path(kind: str, namespace: str | None, name: str = "") -> str:
    prefix, is_namespaced = _PATHS[kind]
    parts = [prefix]
    if is_namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind)
    if name:
        parts.append(quote(name, safe=""))
    return "/".join(parts)


def _event(line: bytes, form: Form[Item]) -> Event[Item]:
    try:
        told = documents.line(line)
        if told.type != "ERROR":
            return Event(told.type, form.object(told.object))
        status = WHOLE.object(told.object)
    except ValueError as error:
        raise Unreachable("the stream carries something that is not a watch event") from error
    raise error_of(int(status.get("code") or 500), status)
