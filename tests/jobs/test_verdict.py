"""A table of pods, and what each says of the run's end."""

from datetime import UTC, datetime

import pytest

from clusters.models import ObservedPod
from jobs.dispatch.verdict import of_failed
from jobs.models import Job

Outcome = Job.Outcome
AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)


def failed(rank: int = 0, **fields: object) -> ObservedPod:
    values = {"phase": "Failed", "exit_code": 1, "reason": "Error", "finished_at": AT, **fields}
    return ObservedPod(rank=rank, name=f"p-{rank}", **values)


def killed(rank: int, **fields: object) -> ObservedPod:
    """A peer that the controller deleted because another rank had failed."""
    return failed(rank, **{"is_deleting": True, "exit_code": 143, **fields})


@pytest.mark.parametrize(
    ("pods", "code", "rank", "exit_code", "is_infrastructure"),
    [
        ([failed(exit_code=3)], Outcome.USER_ERROR, 0, 3, False),
        ([failed(1, finished_at=AT), failed(0, finished_at=LATER)], Outcome.USER_ERROR, 1, 1, False),
        ([failed(1), failed(0)], Outcome.USER_ERROR, 0, 1, False),
        # Killed in the very second of the cause, and of a lower rank.
        ([killed(0), failed(2, exit_code=9), killed(1)], Outcome.USER_ERROR, 2, 9, False),
        ([failed(reason="OOMKilled", exit_code=137)], Outcome.OOM, 0, 137, False),
        ([failed(exit_code=137)], Outcome.OOM, 0, 137, False),
        ([failed(reason="ContainerStatusUnknown", exit_code=137)], Outcome.USER_ERROR, 0, 137, False),
        ([killed(0, exit_code=137), failed(1, exit_code=2)], Outcome.USER_ERROR, 1, 2, False),
        ([failed(reason="Init:Error", exit_code=128)], Outcome.CODE_CHECKOUT, 0, 128, False),
        ([failed(reason="OutOfnvidia.com/gpu", exit_code=None)], Outcome.NODE_LOST, 0, None, True),
        ([failed(reason="UnexpectedAdmissionError", exit_code=None)], Outcome.NODE_LOST, 0, None, True),
        ([failed(disruption="PreemptionByScheduler")], Outcome.PREEMPTED, 0, 1, True),
        ([failed(disruption="EvictionByEvictionAPI", is_deleting=True)], Outcome.PREEMPTED, 0, 1, True),
        # On a lost node a pod never ends; its peers were killed for it.
        (
            [
                killed(0),
                failed(1, phase="Running", exit_code=None, finished_at=None, disruption="DeletionByTaintManager"),
            ],
            Outcome.NODE_LOST,
            1,
            None,
            True,
        ),
        # Started again and again, then deleted by the controller that gives it up.
        ([killed(0, exit_code=7, restarts=3)], Outcome.USER_ERROR, 0, 7, False),
        # Nothing failed by itself: somebody deleted them.
        ([killed(0), killed(1)], Outcome.NODE_LOST, None, None, True),
        ([], Outcome.NODE_LOST, None, None, True),
    ],
)
def test_the_first_pod_that_failed_by_itself_is_the_cause(
    pods: list[ObservedPod], code: str, rank: int | None, exit_code: int | None, is_infrastructure: bool
) -> None:
    judged = of_failed(pods)
    assert (judged.code, judged.rank, judged.exit_code, judged.is_infrastructure) == (
        code,
        rank,
        exit_code,
        is_infrastructure,
    )


def test_what_git_said_is_the_message_of_a_failed_checkout() -> None:
    judged = of_failed([failed(reason="Init:Error", message="", init_message="fatal: no such ref")])
    assert judged.message == "fatal: no such ref"


def test_the_order_of_the_pods_does_not_matter() -> None:
    pods = [killed(0), failed(3, finished_at=LATER), failed(2), failed(1, finished_at=None, exit_code=5)]
    assert of_failed(pods) == of_failed(pods[::-1])
