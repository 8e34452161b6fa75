"""What would happen to a job that is not submitted yet: the same snapshot, the same `decide`. Not a reservation."""

from dataclasses import dataclass, replace

from jobs.engine import snapshot
from jobs.engine.snapshot import Loaded
from jobs.engine.workloads import Indices, workload_of
from jobs.models import Cycle
from jobs.scheduler.decide import can_ever_fit, decide
from jobs.scheduler.types import Admission, Outcome, Reason, Snapshot, Wait, Workload
from jobs.services.schedules import run_of
from jobs.services.submit import Request, job_of
from portal.core import clock

# Sorts after every real identifier, so that a tie is lost to a job that exists.
PREVIEW_ID = "~preview"


@dataclass(frozen=True, slots=True)
class Preview:
    """The answer. Exactly one of `admission` and `wait` is set; `never` says that no time will help."""

    cycle: int
    loaded: Loaded
    admission: Admission | None
    wait: Wait | None
    never: Reason | None
    workload: Workload
    # Runs of the same queue that wait before it, the next one first, by uid.
    before: tuple[str, ...]

    @property
    def cluster(self) -> str:
        """The cluster where it would start."""
        return self.loaded.snapshot.clusters[self.admission.placement.cluster] if self.admission else ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its ranks."""
        if self.admission is None:
            return ()
        return tuple(self.loaded.snapshot.hosts.ids[host] for host in self.admission.placement.hosts)


def preview(request: Request) -> Preview:
    """Decide about the request together with everything that waits now."""
    loaded = snapshot.load()
    workload = replace(_workload(request, loaded.indices), id=PREVIEW_ID)
    with_it = replace(loaded.snapshot, workloads=(*loaded.snapshot.workloads, workload))
    outcome = decide(with_it)
    wait = next((row for row in outcome.waits if row.workload == PREVIEW_ID), None)
    last = Cycle.objects.order_by("-pk").values_list("pk", flat=True).first()
    return Preview(
        cycle=last or 0,
        loaded=loaded,
        admission=next((row for row in outcome.admissions if row.workload == PREVIEW_ID), None),
        wait=wait,
        never=can_ever_fit(with_it, workload),
        workload=workload,
        before=_before(with_it, outcome, workload) if wait else (),
    )


def _workload(request: Request, indices: Indices) -> Workload:
    job = job_of(request)
    if job.is_schedule:
        job = run_of(job)
    job.created_at = clock.now()
    return workload_of(job, job.workers, None, indices)


def _before(world: Snapshot, outcome: Outcome, workload: Workload) -> tuple[str, ...]:
    same_queue = {row.id for row in world.workloads if row.queue == workload.queue}
    order = [wait.workload for wait in outcome.waits if wait.workload in same_queue]
    return tuple(order[: order.index(PREVIEW_ID)])
