"""What a pod takes from its node, counted as Kubernetes counts it."""

from typing import Any

from clusters.watch.foreign import ForeignShare, ForeignUsage
from clusters.watch.inventory import FlavorSelector
from clusters.watch.reading import ForeignPod
from clusters.watch.shapes import Pod, PodSpec
from clusters.watch.usage import Amounts, PodUsage, requests_of, usage_of
from tests.clusters.documents import PRODUCT, Json, pod, read_as

H100 = FlavorSelector(7, "h100", "nvidia.com/gpu.product", PRODUCT, "nvidia.com/gpu")


def asks(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def requests(**spec: Any) -> Amounts:
    return requests_of(read_as(PodSpec, spec))


def usage(body: Json) -> PodUsage | None:
    return usage_of(read_as(Pod, body))


def test_containers_add_up_and_a_larger_init_step_stands_in_for_them() -> None:
    assert requests(containers=[asks("500m"), asks("1")]) == {"cpu": 1500}
    assert requests(initContainers=[asks("4")], containers=[asks("1")]) == {"cpu": 4000}


def test_sidecars_run_beside_everything_that_follows_them() -> None:
    sidecar = asks("1", restartPolicy="Always")

    assert requests(initContainers=[sidecar, asks("2")], containers=[asks("1")]) == {"cpu": 3000}
    assert requests(initContainers=[asks("2"), sidecar], containers=[asks("1")]) == {"cpu": 2000}


def test_limits_stand_in_for_requests_and_overhead_comes_on_top() -> None:
    limited = {"resources": {"limits": {"cpu": "1"}}}

    assert requests(containers=[limited], overhead={"cpu": "250m"}) == {"cpu": 1250}


def test_a_quantity_that_cannot_be_read_counts_as_nothing() -> None:
    assert requests(containers=[asks("many")]) == {"cpu": 0}


def test_only_a_bound_pod_that_has_not_ended_takes_room() -> None:
    assert usage(pod("p", node="n1", phase="Running")) is not None
    assert usage(pod("p")) is None
    assert usage(pod("p", node="n1", phase="Succeeded")) is None


def foreign(name: str, **about: Any) -> ForeignPod:
    body = pod(name, **about)
    return ForeignPod(body["metadata"]["uid"], usage(body))


def test_foreign_usage_follows_pods_as_they_come_change_and_go() -> None:
    known = ForeignUsage()

    assert known.put(foreign("a", node="n1", gpus=3, phase="Running")) == {"n1"}
    assert known.put(foreign("a", node="n1", gpus=3, phase="Running", version=2)) == set()
    assert known.put(foreign("b", node="n1", phase="Running")) == {"n1"}
    assert known.share("n1", [H100]) == ForeignShare(4000, 8192, 2, {7: 3})
    assert known.put(foreign("a", node="n1", gpus=3, phase="Failed")) == {"n1"}
    assert known.share("n1", [H100]) == ForeignShare(2000, 4096, 1, {})
    assert known.drop("uid-b") == {"n1"}
    assert known.share("n1", [H100]) == ForeignShare()


def test_a_new_list_of_foreign_pods_clears_nodes_that_it_does_not_name() -> None:
    known = ForeignUsage()
    known.put(foreign("a", node="n1", gpus=1))

    assert known.replace([foreign("b", node="n2", gpus=2)]) == {"n1", "n2"}
    assert known.share("n1", [H100]) == ForeignShare()
