"""A trace becomes submissions that a test can wait for."""

import pytest

from jobs.simulator.replay import Pace, plan
from jobs.simulator.traces import Arrival, TraceError, read

PACE = Pace(speed=600, min_run_s=2, max_run_s=120)
PHILLY = """timestamp,duration,num_gpus,cluster
2017-10-01 00:00:45,30,1,6214e9
2017-10-01 00:20:45,6000,16,11cb48
2017-10-01 00:10:45,9000000,3,11cb48
"""
GANGS = """job_id,num_gpu,submit_s,duration_s
0,16,100,1453510
1,1,27100,600
"""


def test_both_forms_of_traces_are_read_by_arrival() -> None:
    assert [arrival.at_s for arrival in read(PHILLY.splitlines(), most=10)] == [0, 600, 1200]
    assert read(GANGS.splitlines(), most=1) == [Arrival(0.0, 1453510.0, 16, "")]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", PHILLY + "2017-10-01 00:00:45,soon,1,x\n"])
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(TraceError):
        read(text.splitlines(), most=10)


def test_arrivals_and_runs_are_scaled_and_runs_are_clipped() -> None:
    submissions = plan(read(PHILLY.splitlines(), most=10), PACE)

    assert [(each.at_s, each.run_s) for each in submissions] == [(0, 2), (1, 120), (2, 10)]


@pytest.mark.parametrize(
    ("gpus", "shape"), [(1, (1, 1)), (8, (1, 8)), (12, (2, 6)), (16, (2, 8)), (11, (2, 6)), (128, (16, 8))]
)
def test_more_gpus_than_a_node_has_become_a_gang_of_equal_workers(gpus: int, shape: tuple[int, int]) -> None:
    (submission,) = plan([Arrival(0, 60, gpus, "")], PACE)

    assert (submission.workers, submission.gpus_per_worker) == shape
    assert submission.gpus >= gpus


def test_jobs_without_a_gpu_are_left_out() -> None:
    assert plan([Arrival(0, 60, 0, "")], PACE) == []
