"""A preview -> what page and REST tell of it: can it ever fit, where now, what is left, the exact objects."""

from dataclasses import dataclass
from typing import Any

from clusters.k8s.values import JsonObject
from clusters.models import Dispatch
from jobs.dispatch.render import objects_of
from jobs.engine.preview import Preview, preview
from jobs.explain.reasons import explain
from jobs.jobspec import yaml_text
from jobs.jobspec.beside import beside, places
from jobs.models import Attempt, Job
from jobs.scheduler.types import NO_FLAVOR, UNLIMITED
from jobs.selectors.documents import slowest_link
from jobs.selectors.schedules import times_of
from jobs.services import intake
from jobs.services.submit import Request, job_of

# The id comes with the submission; until then this stands in its place.
PREVIEW_UID = "preview"
STARTS, WAITS, NEVER = "starts", "waits", "never"


@dataclass(frozen=True, slots=True)
class QuotaAfter:
    """The queue's use of one flavor once this job holds its GPUs; `nominal` None: no limit of its own."""

    queue: str
    flavor: str
    used: int
    nominal: int | None

    @property
    def left(self) -> int | None:
        """GPUs that are left then; negative when they do not suffice."""
        return None if self.nominal is None else self.nominal - self.used


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "what if I submitted this now". `ahead` names the runs of the queue that wait before it."""

    cycle: int
    outcome: str
    workers: int
    gpus: int
    cluster: str
    level: str
    flavor: str
    link: str
    nodes: tuple[str, ...]
    reason: dict[str, Any] | None
    position: int | None
    gpus_ahead: int | None
    ahead: tuple[str, ...]
    quota: QuotaAfter | None
    warnings: list[dict[str, str]]
    objects: list[JsonObject]
    # Of a schedule: when it comes due, in its own time zone; the rest of the answer is about a run that came due now.
    times: list[str]

    @property
    def manifest(self) -> str:
        """The objects as YAML."""
        return yaml_text.write(*self.objects)

    @property
    def slowest_link(self) -> str:
        """What the slowest two ranks talk over."""
        return slowest_link(self.level, self.link, self.gpus)


def verdict(request: Request) -> Verdict:
    """Decide about the request on the newest snapshot. Nothing is reserved."""
    found = preview(request)
    wait, admission = found.wait, found.admission
    reason = found.never or (wait.reason if wait else None)
    workers = admission.workers if admission else found.workload.workers
    return Verdict(
        cycle=found.cycle,
        outcome=NEVER if found.never else STARTS if admission else WAITS,
        workers=workers,
        gpus=workers * found.workload.gpus_per_worker,
        cluster=found.cluster,
        level=admission.placement.level if admission else "",
        flavor=_flavor(found),
        link=_link(found),
        nodes=found.nodes,
        reason={"code": reason.code.value, "message": explain(reason), "numbers": dict(reason.numbers)}
        if reason
        else None,
        position=wait.position if wait and not found.never else None,
        gpus_ahead=wait.gpus_ahead if wait and not found.never else None,
        ahead=tuple(found.loaded.jobs[uid].full_name for uid in found.before),
        quota=_quota(found, request, workers),
        warnings=intake.warnings_of(request),
        objects=_objects(found, request, workers),
        times=_times(request),
    )


def _times(request: Request) -> list[str]:
    schedule = request.spec.schedule
    return times_of({"cron": schedule.cron, "time_zone": schedule.time_zone}) if schedule else []


def _flavor_index(found: Preview) -> int:
    if found.admission:
        return found.admission.placement.flavor
    return next(iter(found.workload.flavors), NO_FLAVOR)


def _flavor(found: Preview) -> str:
    index = _flavor_index(found)
    return "" if index == NO_FLAVOR else found.loaded.snapshot.flavors[index]


def _dispatch(found: Preview, request: Request) -> str:
    if found.admission is None or request.spec.workload != "job" or request.spec.pod_sets:
        return Dispatch.GATES
    return found.loaded.dispatches[found.admission.placement.cluster]


def _link(found: Preview) -> str:
    index = _flavor_index(found)
    return "" if index == NO_FLAVOR else found.loaded.links[index]


def _quota(found: Preview, request: Request, workers: int) -> QuotaAfter | None:
    flavor, row, tree = _flavor_index(found), found.workload.queue, found.loaded.snapshot.quota
    if flavor == NO_FLAVOR:
        return None
    nominal = int(tree.nominal[row, flavor])
    return QuotaAfter(
        queue=request.queue.name,
        flavor=_flavor(found),
        used=int(tree.used[row, flavor]) + workers * found.workload.gpus_per_worker,
        nominal=None if nominal == UNLIMITED else nominal,
    )


def _objects(found: Preview, request: Request, workers: int) -> list[JsonObject]:
    job: Job = job_of(request)
    job.uid = PREVIEW_UID
    flavor = _flavor_index(found)
    attempt = Attempt(
        number=1,
        namespace=request.team.namespace,
        object_name=f"m-{PREVIEW_UID}-a1",
        dispatch=_dispatch(found, request),
        is_grouped=found.admission is not None and found.loaded.groupings[found.admission.placement.cluster],
        workers=workers,
        resource_name=found.loaded.resource_names[flavor] if flavor != NO_FLAVOR else "nvidia.com/gpu",
    )
    return objects_of(job, attempt, places(found.nodes, len(beside(job.spec))))
