"""Lists: selection, paging with continue tokens, and the bytes of the answer."""

import base64
import binascii
from dataclasses import dataclass

import orjson

from clusters.simulated.errors import bad_request, expired
from clusters.simulated.matching import Selection
from clusters.simulated.resources import Resource
from clusters.simulated.store import Key, Store, Stored, facts_of

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the remainder "
    "of the results. Continuing with the provided token results in an inconsistent list - objects that were "
    "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
    "list."
)


@dataclass(frozen=True, slots=True)
class Page:
    limit: int = 0
    token: str = ""
    metadata_only: bool = False
    # Some lists of real servers carry null instead of an empty list.
    nulls: bool = False


def list_objects(store: Store, selection: Selection, page: Page) -> bytes:
    """The body of a list answer. Items carry no kind, as on the real server."""
    version, after = _parse_token(store, page.token)
    chosen: list[Stored] = []
    rest = 0
    for stored in store.in_order(selection.resource, selection.namespace, after):
        if not selection.matches(facts_of(selection.resource, stored.object)):
            continue
        if page.limit and len(chosen) == page.limit:
            rest += 1
        else:
            chosen.append(stored)
    meta: dict[str, object] = {"resourceVersion": str(version)}
    if rest:
        meta["continue"] = _token(version, chosen[-1].key)
        if not selection.selective:
            meta["remainingItemCount"] = rest
    return _body(selection.resource, meta, chosen, page)


def selected(store: Store, selection: Selection) -> list[Stored]:
    resource = selection.resource
    held = store.in_order(resource, selection.namespace)
    return [stored for stored in held if selection.matches(facts_of(resource, stored.object))]


def _body(resource: Resource, meta: dict[str, object], chosen: list[Stored], page: Page) -> bytes:
    if page.metadata_only:
        head = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":'
        items = [orjson.dumps({"metadata": stored.object["metadata"]}) for stored in chosen]
    else:
        head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
        items = [stored.raw for stored in chosen]
    listed = b"null" if page.nulls and not items else b"[" + b",".join(items) + b"]"
    return head + orjson.dumps(meta) + b',"items":' + listed + b"}"


def _token(version: int, key: Key) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([version, *key])).decode()


def _parse_token(store: Store, token: str) -> tuple[int, Key | None]:
    if not token:
        return store.version, None
    try:
        version, namespace, name = orjson.loads(base64.urlsafe_b64decode(token))
    except (ValueError, binascii.Error) as error:
        raise bad_request("continue key is not valid: " + str(error)) from error
    if version < store.compacted:
        raise expired(_TOO_OLD)
    return version, (namespace, name)
