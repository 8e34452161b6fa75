"""The arithmetic of the benches that take minutes: what they count and what they compare."""

from typing import Any

import pytest

from tests.bench import __main__ as bench
from tests.bench import e2e_bind, e2e_multi, restart
from tests.bench.stage import LEVELS, Measured, plain_job, pod_writes
from tests.bench.tape import Told, judged
from tests.bench.targets import E2E_BIND

METRICS = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",group="",resource="pods",subresource="",verb="POST"} 8
apiserver_request_total{code="201",component="apiserver",group="",resource="pods",subresource="binding",verb="POST"} 8
apiserver_request_total{code="200",component="apiserver",group="",resource="pods",subresource="status",verb="PUT"} 1e+01
apiserver_request_total{code="200",component="apiserver",group="",resource="pods",subresource="",verb="LIST"} 99
apiserver_request_total{code="200",component="apiserver",group="metrics.k8s.io",resource="pods",verb="PATCH"} 5
apiserver_request_total{code="201",component="apiserver",group="batch",resource="jobs",subresource="",verb="POST"} 1
apiserver_request_duration_seconds_count{group="",resource="pods",verb="POST"} 8
"""


def test_writes_to_pods_are_those_of_the_core_group_and_no_reads() -> None:
    assert pod_writes(METRICS) == 26


def test_a_plain_job_is_ours_without_gate_plan_and_labels() -> None:
    body = plain_job("plain-1", 8)

    spec = body["spec"]["template"]["spec"]
    assert body["spec"]["completions"] == 8
    assert body["spec"]["suspend"] is False
    assert "schedulingGates" not in spec
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "muster.internal/" not in str(body["metadata"]) + str(body["spec"]["template"]["metadata"])


def told(version: int, at_s: float, kind: str, body: dict[str, Any]) -> Told:
    return Told(version, at_s, kind, "ADDED", body)


def pod(name: str, node: str) -> dict[str, Any]:
    requests = {"nvidia.com/gpu": "1"}
    spec = {"nodeName": node, "containers": [{"resources": {"requests": requests}}]}
    return {"metadata": {"uid": name, "name": name}, "spec": spec, "status": {"phase": "Pending"}}


def test_streams_are_judged_in_the_order_of_the_server_whatever_came_first() -> None:
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    events = [told(3, 1.0, "pods", pod("b", "n1")), told(2, 1.1, "pods", pod("a", "n1")), told(1, 1.2, "nodes", node)]

    (found,) = judged(events)

    assert (found.rule, found.subject) == ("capacity", "n1")


def test_a_gang_counts_once_whether_started_again_touched_or_lost() -> None:
    gangs = [("run-0", "running", 1), ("run-1", "running", 2), ("run-2", "queued", 2), ("run-3", "running", 1)]
    written = [
        {"method": "DELETE", "path": "/apis/batch/v1/namespaces/team/jobs/run-3", "name": ""},
        {"method": "POST", "path": "/apis/batch/v1/namespaces/team/jobs", "name": "muster-canary"},
    ]

    found = restart.judged(gangs, written, 5)

    assert found == {"double_starts": 4, "started_again": 2, "touched": 1, "lost": 2}


def rounds(*dispatch_b: float, violations: tuple[str, ...] = ()) -> list[dict[str, Measured]]:
    return [
        {
            "plain_a": Measured(10, 2_000, ()),
            "plain_b": Measured(6, 2_000, ()),
            "plain_c": Measured(2, 1_024, ()),
            "dispatch_b": Measured(seconds, 3_000, violations),
            "dispatch_c": Measured(3, 1_536, ()),
            "path_a": Measured(40, 2_000, ()),
            "path_b": Measured(12, 2_000, ()),
        }
        for seconds in dispatch_b
    ]


def test_ratios_are_medians_of_the_rounds() -> None:
    shapes = e2e_bind.shapes(1_000)
    assert [(each.jobs, each.pods) for each in shapes] == [(1_000, 1_000), (125, 1_000), (1, 512)]

    found = e2e_bind.figures(rounds(8, 60, 7.5), *shapes)

    assert (found["dispatch_ratio_b"], found["gang512_ratio"], found["path_ratio_b"]) == (0.75, 1.5, 0.5)
    assert (found["jobs_per_s_a"], found["extra_writes_per_pod"], found["partial_gangs"]) == (25, 1, 0)


def test_every_violation_of_every_round_counts() -> None:
    found = e2e_bind.figures(rounds(8, 8, violations=("whole run/1",)), *e2e_bind.shapes(1_000))

    assert found["partial_gangs"] == 2


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_has_targets_of_its_own(level: str) -> None:
    found = e2e_bind.figures(rounds(8), *e2e_bind.shapes(1_000))

    report = bench.judge("e2e-bind", found, E2E_BIND[level])

    values = {target["name"]: target["ok"] for target in report["targets"]}
    assert values["extra_writes_per_pod"] == (level == "L0")


def test_waits_are_parted_at_the_hang_by_the_time_of_submission() -> None:
    rows = [(at, 1.0) for at in range(100)] + [(at, 3.0) for at in range(100, 200)]

    found = e2e_multi.figures(rows, 100)

    assert (found["healthy_p95_ratio"], found["waits"]) == (3.0, {"before": 100, "after": 100})
