"""How far apart nodes are, by their labels, and by what their GPUs talk there."""

import pytest

from jobs.selectors.documents import slowest_link
from jobs.services.span import lowest_common

LEVELS = [("block", "b"), ("rack", "r")]


@pytest.mark.parametrize(
    ("nodes", "level"),
    [
        ([{"b": "1", "r": "1"}], "node"),
        ([{"b": "1", "r": "1"}, {"b": "1", "r": "1"}], "rack"),
        ([{"b": "1", "r": "1"}, {"b": "1", "r": "2"}], "block"),
        ([{"b": "1", "r": "1"}, {"b": "2", "r": "1"}], "cluster"),  # racks of two blocks may have one name
        ([{"b": "1", "r": "1"}, {"r": "1"}], "cluster"),
        ([{}, {}], "cluster"),
    ],
)
def test_nodes_are_together_at_the_lowest_level_that_they_share(nodes: list[dict[str, str]], level: str) -> None:
    assert lowest_common(nodes, LEVELS) == level


@pytest.mark.parametrize(
    ("level", "gpus", "link"),
    [
        ("node", 8, "PCIe 64 GB/s"),
        ("node", 1, ""),
        ("node", 0, ""),
        ("rack", 2, "network within one rack"),
        ("", 8, ""),
    ],
)
def test_the_slowest_link_is_that_of_the_flavor_inside_a_node_and_none_for_one_gpu(
    level: str, gpus: int, link: str
) -> None:
    assert slowest_link(level, "PCIe 64 GB/s", gpus) == link
