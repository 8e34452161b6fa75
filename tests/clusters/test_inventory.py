"""What a node offers, and which of its changes become lines of its timeline."""

from typing import Any

from clusters.watch.inventory import Catalogue, FlavorSelector, NodeFacts, NodeView, changes, facts_of, node_view
from clusters.watch.shapes import Node
from tests.clusters.documents import PRODUCT, Json, node, read_as

H100 = FlavorSelector(7, "h100", "nvidia.com/gpu.product", PRODUCT, "nvidia.com/gpu")
MIG = FlavorSelector(8, "mig", "nvidia.com/gpu.product", PRODUCT, "nvidia.com/mig-1g.10gb")
CATALOGUE = Catalogue((H100, MIG), ("topology/rack",))


def view_of(document: Json) -> NodeView:
    return node_view(read_as(Node, document), CATALOGUE.flavors)


def facts(**document: Any) -> NodeFacts:
    return facts_of(view_of(node("n1", **document)))


def happened(before: NodeFacts | None, after: NodeFacts) -> list[tuple[str, object]]:
    return [(change.kind, change.detail) for change in changes(before, after, CATALOGUE)]


def test_a_node_offers_the_flavors_whose_label_and_resource_it_has() -> None:
    view = view_of(node("n1", gpus=7, capacity=8))

    assert view.devices == {7: (8, 7)}
    assert (view.cpu_milli, view.memory_mib, view.pods) == (96_000, 1_048_576, 110)
    assert (view.address, view.kubelet_version, view.is_ready) == ("10.0.0.1", "v1.36.3", True)


def test_a_node_of_an_unknown_product_offers_nothing_but_is_there() -> None:
    view = view_of(node("n1", labels={"nvidia.com/gpu.product": "Tesla-T4"}))

    assert view.devices == {}
    assert view.name == "n1"


def test_heartbeats_and_versions_are_no_change_of_a_node() -> None:
    beaten = node("n1", version=9)
    beaten["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-12-01T10:00:00Z"

    assert view_of(beaten) == view_of(node("n1"))


def test_the_first_look_registers_a_node() -> None:
    assert happened(None, facts()) == [("registered", {})]


def test_nothing_happened_when_nothing_changed() -> None:
    assert happened(facts(), facts(version=2)) == []


def test_readiness_cordon_and_devices_make_the_timeline() -> None:
    assert happened(facts(), facts(ready=False)) == [("not_ready", {})]
    assert happened(facts(ready=False), facts()) == [("ready", {})]
    assert happened(facts(), facts(cordoned=True)) == [("cordoned", {})]
    assert happened(facts(cordoned=True), facts()) == [("uncordoned", {})]
    assert happened(facts(), facts(gpus=7)) == [("device_lost", {"flavor": "h100", "from": 8, "to": 7})]
    assert happened(facts(gpus=7), facts()) == [("device_recovered", {"flavor": "h100", "from": 7, "to": 8})]


def test_a_machine_made_anew_under_an_old_name_has_returned() -> None:
    assert happened(facts(), facts(uid="other")) == [("returned", {"uid": "other"})]


def test_only_labels_of_the_topology_move_a_node() -> None:
    moved = facts(labels={"topology/rack": "r2", "note": "x"})

    assert happened(facts(), moved) == [("relabeled", {"topology/rack": ["r1", "r2"]})]
    assert happened(facts(), facts(labels={"note": "x"})) == []
