"""Whose load a reading is."""

from datetime import UTC, datetime

from clusters.telemetry.join import Owner, samples
from clusters.telemetry.parse import Reading

AT = datetime(2026, 12, 1, tzinfo=UTC)


def joined(*readings: Reading, owners: dict[tuple[str, str], Owner]) -> list[tuple[str, int | None]]:
    return [(s.run, s.rank) for s in samples(readings, owners, at=AT, cluster_id=1, node_id=2)]


def reading(pod: str) -> Reading:
    return Reading(gpu="GPU-a", index=0, namespace="team-x", pod=pod, values={"utilisation": 37.0})


def test_a_reading_belongs_to_the_pod_that_runs_now() -> None:
    owners = {("team-x", "r-1"): Owner("run1", 3)}

    assert joined(reading("r-1"), owners=owners) == [("run1", 3)]


def test_an_exporter_that_goes_on_naming_a_pod_that_ended_names_nobody() -> None:
    assert joined(reading("r-1"), owners={}) == [("", None)]


def test_a_pod_of_the_same_name_in_another_namespace_is_another_pod() -> None:
    assert joined(reading("r-1"), owners={("team-y", "r-1"): Owner("run1", 0)}) == [("", None)]
