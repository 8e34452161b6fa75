"""The referee of watch events sees what is broken, and nothing in a run that is whole."""

from typing import Any

from jobs.simulator.invariants import Referee

DOMAIN = "muster.internal"
GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def referee(*nodes: str, gpus: int = 8, bind_s: float = 10.0) -> Referee:
    made = Referee(domain=DOMAIN, bind_s=bind_s)
    for name in nodes:
        body = {"metadata": {"name": name}, "status": {"allocatable": {GPU: str(gpus), "cpu": "96"}}}
        assert made.see("nodes", "ADDED", body, 0) == []
    return made


def spec(gpus: int) -> Json:
    return {"containers": [{"name": "main", "resources": {"limits": {GPU: str(gpus), "cpu": "4"}}}]}


def labels(run: str, attempt: int) -> Json:
    return {f"{DOMAIN}/run": run, f"{DOMAIN}/attempt": str(attempt)}


def gang(judge: Referee, run: str, plan: str, *, gpus: int = 8, attempt: int = 1, is_born_pinned: bool = False) -> None:
    size = len(plan.split(","))
    metadata = {"name": run, "labels": labels(run, attempt), "annotations": {f"{DOMAIN}/plan": plan}}
    template = {"metadata": {"annotations": metadata["annotations"]} if is_born_pinned else {}, "spec": spec(gpus)}
    body = {"metadata": metadata, "spec": {"completions": size, "template": template}}
    assert judge.see("jobs", "ADDED", body, 0) == []


def pod(run: str, rank: int, node: str = "", *, gpus: int = 8, attempt: int = 1, phase: str = "Pending") -> Json:
    index = {"batch.kubernetes.io/job-completion-index": str(rank)}
    metadata = {"uid": f"{run}-{attempt}-{rank}", "labels": labels(run, attempt) | index}
    gate = [] if node else [{"name": f"{DOMAIN}/placement"}]
    return {
        "metadata": metadata,
        "spec": spec(gpus) | {"nodeName": node, "schedulingGates": gate},
        "status": {"phase": phase},
    }


def rules(judge: Referee, *bodies: Json, at_s: float = 0, change: str = "MODIFIED") -> list[str]:
    return [violation.rule for body in bodies for violation in judge.see("pods", change, body, at_s)]


def test_a_gang_that_gathers_starts_and_ends_breaks_nothing() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a,b")

    assert rules(judge, pod("r", 0), pod("r", 1), pod("r", 0, "a"), pod("r", 1, "b")) == []
    assert rules(judge, pod("r", 0, "a", phase="Succeeded"), at_s=100) == []
    assert judge.overdue(200) == []


def test_a_pod_that_is_bound_before_its_gang_has_gathered_is_seen() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a,b")

    assert rules(judge, pod("r", 0), pod("r", 0, "a")) == ["gathered"]


def test_a_gang_that_is_born_pinned_need_not_gather() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a,b", is_born_pinned=True)

    assert rules(judge, pod("r", 1, "b"), pod("r", 0, "a")) == []


def test_a_rank_that_is_bound_elsewhere_than_planned_is_seen() -> None:
    judge = referee("a", "b", "c")
    gang(judge, "r", "a,b")

    assert rules(judge, pod("r", 0), pod("r", 1), pod("r", 0, "c"), pod("r", 1, "b")) == ["place"]


def test_a_gang_that_stays_bound_in_part_is_seen_once() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a,b")
    rules(judge, pod("r", 0), pod("r", 1), pod("r", 0, "a"), at_s=5)

    assert judge.overdue(14) == []
    assert [violation.rule for violation in judge.overdue(16)] == ["whole"]
    assert judge.overdue(30) == []


def test_a_gang_that_was_rolled_back_in_time_is_gone() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a,b")
    rules(judge, pod("r", 0), pod("r", 1), pod("r", 0, "a"))
    rules(judge, pod("r", 0, "a"), change="DELETED", at_s=5)

    assert judge.overdue(60) == []


def test_a_node_over_its_devices_is_seen_whoever_took_them() -> None:
    judge = referee("a")
    foreign = {"metadata": {"uid": "f"}, "spec": spec(1) | {"nodeName": "a"}, "status": {"phase": "Running"}}
    gang(judge, "r", "a")

    assert rules(judge, foreign, pod("r", 0), pod("r", 0, "a")) == ["capacity"]


def test_devices_of_pods_that_ended_are_free() -> None:
    judge = referee("a")
    gang(judge, "r", "a")
    gang(judge, "s", "a")

    assert rules(judge, pod("r", 0), pod("r", 0, "a"), pod("r", 0, "a", phase="Failed")) == []
    assert rules(judge, pod("s", 0), pod("s", 0, "a")) == []


def test_two_halves_that_want_one_node_are_seen() -> None:
    judge = referee("a", "b", "c")
    gang(judge, "r", "a,b")
    gang(judge, "s", "c,b")
    rules(judge, pod("r", 0), pod("r", 1), pod("s", 0), pod("s", 1), pod("r", 0, "a"))

    assert rules(judge, pod("s", 0, "c")) == ["halves"]


def test_two_attempts_of_one_run_at_once_are_seen() -> None:
    judge = referee("a", "b")
    gang(judge, "r", "a", attempt=1)
    gang(judge, "r", "b", attempt=2)
    rules(judge, pod("r", 0), pod("r", 0, "a"), pod("r", 0, attempt=2))

    assert rules(judge, pod("r", 0, "b", attempt=2)) == ["overlap"]
