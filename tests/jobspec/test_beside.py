"""Where the pods of further sets go, and what the decision counts for them."""

import pytest

from jobs.jobspec.beside import Beside, beside, most_beside_one, places

SETS = {
    "pod_sets": [
        {"name": "ps", "workers": 3, "cpu": {"request": "2"}, "memory": {"request": "1Gi"}},
        {"name": "loader", "workers": 1, "cpu": {"request": "500m"}},
    ]
}


def test_pods_come_set_by_set() -> None:
    assert beside(SETS) == [Beside(2000, 1024)] * 3 + [Beside(500, 0)]
    assert beside({}) == []


@pytest.mark.parametrize(
    ("workers", "most"),
    [(1, Beside(6500, 3072)), (2, Beside(4000, 2048)), (3, Beside(2500, 1024)), (8, Beside(2000, 1024))],
)
def test_the_worker_with_the_most_beside_it_counts(workers: int, most: Beside) -> None:
    assert most_beside_one(SETS, workers) == most


def test_without_further_sets_nothing_comes_beside_a_worker() -> None:
    assert most_beside_one({}, 4) == Beside(0, 0)


def test_pods_go_beside_the_workers_one_after_the_other() -> None:
    assert places(["a", "b"], 3) == ["a", "b", "a", "b", "a"]
    assert places([], 3) == []
