"""Documents are read as far as they are of use, whatever else stands in them."""

import json
from typing import Any

import pytest

from clusters.watch.inventory import Catalogue
from clusters.watch.mirror import reader_for, sources
from clusters.watch.reading import FORMS, OBJECT_KINDS, ForeignPod
from tests.clusters.documents import Json, claim, job, node, pod, warning

_KEPT = {"labels", "annotations", "requests", "limits", "capacity", "allocatable"}
DOCUMENTS: dict[str, Json] = {
    "pods": pod("p", run="r1", node="n1", gpus=8, status={"containerStatuses": [{"restartCount": 2}]}),
    "nodes": node("n1", cordoned=True),
    "jobs": job("j", suspend=True, status={"active": 1}),
    "cronjobs": job("c", suspend=True, status={"active": [{"name": "c-1"}]}),
    "deployments": job("d", status={"readyReplicas": 1}),
    "statefulsets": job("s", status={"readyReplicas": 2}),
    "events": warning("uid-p", "FailedMount", "no such volume"),
    "persistentvolumeclaims": claim("data"),
}


def test_every_kind_that_is_followed_has_its_form() -> None:
    assert FORMS.keys() == DOCUMENTS.keys() == {source.kind for source in sources()}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_nobody_reads_makes_no_difference(kind: str) -> None:
    reader, form, body = reader_for(Catalogue()), FORMS[kind], DOCUMENTS[kind]

    plain = form.object(json.dumps(body).encode())
    laden = form.object(json.dumps(_laden(body, kept=_KEPT | ({"status"} if kind in OBJECT_KINDS else set()))).encode())

    assert plain == laden
    assert reader.read(kind, plain) == reader.read(kind, laden)


def test_a_bookmark_carries_nothing_but_a_version() -> None:
    metadata = '"metadata":{"resourceVersion":"8","creationTimestamp":null}'
    sent = f'{{"kind":"Pod",{metadata},"spec":{{"containers":null}},"status":{{}}}}'.encode()
    for form in FORMS.values():
        assert form.object(sent).metadata.resource_version == "8"


def test_a_quantity_may_be_a_number() -> None:
    body = pod("p", node="n1")
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 2, "nvidia.com/gpu": 1}}

    seen = reader_for(Catalogue()).read("pods", FORMS["pods"].object(json.dumps(body).encode()))

    assert isinstance(seen, ForeignPod)
    assert seen.usage is not None
    assert seen.usage.amounts == {"cpu": 2000, "nvidia.com/gpu": 1}


def _laden(value: Any, kept: set[str]) -> Any:
    """Put something that nobody asked for beside every field, but not into what is kept whole."""
    if isinstance(value, list):
        return [_laden(each, kept) for each in value]
    if not isinstance(value, dict):
        return value
    more = {key: each if key in kept else _laden(each, kept) for key, each in value.items()}
    return {"kind": "Thing", "managedFields": [{"f:spec": {}}], **more, "f:more": {"a": [1, None, "b"]}}
