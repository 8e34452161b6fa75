"""Lanes of the driver: a cluster that hangs keeps its own thread waiting and nobody else."""

import threading
from collections.abc import Sequence

from jobs.dispatch import lanes


def test_a_lane_that_hangs_holds_up_no_other_and_is_known_as_busy() -> None:
    release, done = threading.Event(), []

    def work(items: Sequence[str]) -> None:
        if "hangs" in items:
            release.wait(20)
        done.append(items[0])

    try:
        lanes.serve({-1: ["hangs"], -2: ["works"]}, work)
        assert done == ["works"]
        assert lanes.busy() == {-1}
    finally:
        release.set()
    lanes.serve({-1: ["again"]}, work)

    assert done == ["works", "hangs", "again"]
    assert lanes.busy() == set()


def test_work_that_breaks_frees_its_lane() -> None:
    def work(_items: Sequence[str]) -> None:
        raise KeyError("a fault of ours")

    lanes.serve({-1: ["breaks"]}, work)

    assert lanes.busy() == set()
