"""A trace's arrivals -> what is submitted when, at a pace that a test can wait for. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobs.simulator.traces import Arrival


@dataclass(frozen=True, slots=True)
class Pace:
    """`speed` divides arrival and run times; run times are then clipped to seconds from `min_run_s` to `max_run_s`."""

    speed: float
    min_run_s: float
    max_run_s: float


@dataclass(frozen=True, slots=True)
class Submission:
    """One job: seconds after the start, seconds it runs, and its shape in whole GPUs."""

    at_s: float
    run_s: float
    workers: int
    gpus_per_worker: int

    @property
    def gpus(self) -> int:
        """All its GPUs."""
        return self.workers * self.gpus_per_worker


def plan(arrivals: Iterable[Arrival], pace: Pace, *, gpus_per_node: int = 8) -> list[Submission]:
    """Return the submissions by time. Jobs of a trace without a GPU are left out."""
    submissions = []
    for arrival in arrivals:
        if arrival.gpus <= 0:
            continue
        workers = -(-arrival.gpus // gpus_per_node)
        run_s = min(pace.max_run_s, max(pace.min_run_s, arrival.duration_s / pace.speed))
        # Counts that do not divide evenly are rounded up: all workers of a gang have one shape.
        per_worker = -(-arrival.gpus // workers)
        submissions.append(Submission(arrival.at_s / pace.speed, run_s, workers, per_worker))
    return sorted(submissions, key=lambda submission: submission.at_s)
