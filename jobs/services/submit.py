"""Take a checked JobSpec into the queue: the rules that need rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from django.db import transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from clusters import quantities
from clusters.models import Cluster, NodeAccelerator, PersistentClaim, ResourceFlavor
from jobs import transitions
from jobs.jobspec import rules
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.problem import Problem
from jobs.models import Job, JobEvent, JobName
from jobs.selectors.jobs import jobs_visible_to
from portal.core import audit, clock
from portal.core.audit import Actor, Target
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError, Fault, InvalidInputError
from portal.identity.models import Team, TeamSecret, User
from quotas.models import PriorityClass, Queue, Quota
from quotas.selectors.priority import priority_for

MIB = 2**20
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Request:
    """A JobSpec with the rows that its names stand for."""

    spec: JobSpec
    team: Team
    queue: Queue
    priority_class: PriorityClass
    flavors: tuple[ResourceFlavor, ...]
    clusters: tuple[Cluster, ...]
    parent: Job | None = None
    # What is allowed and looks like a mistake, once the rows are known.
    warnings: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Found:
    """What is wrong, and what is odd, gathered on the way."""

    faults: list[Fault] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def refuse(self, field: str, code: str, message: str, **numbers: int | str) -> None:
        """Note a fault; `numbers` fill its sentence."""
        self.faults.append(Fault(field, code, message % numbers if numbers else message, numbers))


def resolve(spec: JobSpec, *, team: Team, reader: User | None = None) -> Request:
    """Find the rows behind the names of a spec; its parent is a run that `reader` may see.

    Raise InvalidInputError that names each field, a code of its own, and its limit.
    """
    found = _Found()
    queue = _queue(spec, team, found)
    flavors = _flavors(spec, queue, found)
    clusters = _clusters(spec, team, found)
    _check_secrets(spec, team, found)
    _check_size(spec, flavors, found)
    if spec.replicas == 0:  # one that runs may be scaled to 0; one that never ran would wait for nothing
        found.refuse("replicas", "no_replicas", _("A service starts with 1 replica or more."))
    priority_class = _priority(spec, team, found)
    parent = _parent(spec, reader, found)
    if found.faults or queue is None or priority_class is None:
        raise InvalidInputError.of(found.faults)
    return Request(spec, team, queue, priority_class, flavors, clusters, parent, tuple(found.warnings))


def job_of(request: Request) -> Job:
    """Return the row that the request would make, not stored, without owner and number."""
    spec = request.spec
    wanted = spec.workers if spec.replicas is None else spec.replicas
    # A schedule makes runs, and holds nothing itself.
    own = 0 if spec.workload == "cronjob" else wanted
    named = replace(spec, queue=request.queue.name, priority=request.priority_class.name)
    return Job(
        team=request.team,
        queue=request.queue,
        name=spec.name,
        kind=spec.kind,
        workload=spec.workload,
        spec=named.as_document(),
        labels=dict(spec.labels),
        priority_class=request.priority_class,
        priority=request.priority_class.value,
        workers=own,
        # A service starts with the replicas that fit.
        min_workers=min(own, spec.min_workers if spec.replicas is None else 1),
        gpus_per_worker=spec.gpus_per_worker,
        gpus=own * spec.gpus_per_worker,
        cpu_milli=quantities.millis(spec.cpu.request) if spec.cpu else 0,
        memory_mib=-(-quantities.whole(spec.memory.request) // MIB) if spec.memory else 0,
        flavor_ids=[flavor.pk for flavor in request.flavors] if spec.accelerators else [],
        cluster_ids=[cluster.pk for cluster in request.clusters],
        topology_mode=spec.topology.mode,
        topology_level=spec.topology.level or "",
        spread_policy=spec.spread_policy,
        tolerations=[
            {"key": item.key, "operator": item.operator, "value": item.value, "effect": item.effect}
            for item in spec.tolerations
        ],
    )


@transaction.atomic
def submit_job(
    *,
    actor: Actor,
    owner: User,
    request: Request,
    warnings: Iterable[Mapping[str, object]] = (),
) -> Job:
    """Queue a job and ask for a cycle."""
    job = job_of(request)
    job.owner = owner
    job.parent = request.parent
    job.number = next_number(job.team, job.name)
    job.warnings = [dict(warning) for warning in warnings]
    job.save(force_insert=True)
    JobEvent.objects.create(job=job, at=clock.now(), code="queued", data={"gpus": job.gpus}, actor=actor.name)
    target = Target("job", job.uid, job.full_name, job.team_id)
    audit.record(actor, "job.submit", target, after={"spec": job.spec})
    transitions.announce(job)
    enqueue("jobs.tasks.run_cycle")
    return job


@transaction.atomic
def all_or_none(submit: Callable[[object], Made], bodies: Iterable[object]) -> list[Made]:
    """Submit each; if one is refused, none is queued, and the refusal names its place ("[1].workers")."""
    return [_placed(submit, index, body) for index, body in enumerate(bodies)]


def _placed(submit: Callable[[object], Made], index: int, body: object) -> Made:
    try:
        return submit(body)
    except DomainError as refusal:
        refusal.move_below(f"[{index}]")
        raise


def next_number(team: Team, name: str) -> int:
    """Take the next number of a name in a team."""
    row, _made = JobName.objects.get_or_create(team=team, name=name)
    # The update locks the row until the commit, so two submits of one name get two numbers.
    JobName.objects.filter(pk=row.pk).update(last_number=F("last_number") + 1)
    return JobName.objects.values_list("last_number", flat=True).get(pk=row.pk)


def _queue(spec: JobSpec, team: Team, found: _Found) -> Queue | None:
    queues = {queue.name: queue for queue in Queue.objects.filter(team=team)}
    if spec.queue is None:
        queue = next((queue for queue in queues.values() if queue.is_default), None)
        if queue is None:
            found.refuse("queue", "no_default_queue", _("The team %(team)s has no default queue."), team=team.slug)
        return queue
    if spec.queue not in queues:
        names = ", ".join(sorted(queues)) or "-"
        text = _("Unknown queue. The queues of this team are: %(names)s.")
        found.refuse("queue", "unknown_queue", text, names=names)
    return queues.get(spec.queue)


def _priority(spec: JobSpec, team: Team, found: _Found) -> PriorityClass | None:
    try:
        return priority_for(team, spec.priority)
    except InvalidInputError as refusal:
        found.faults += refusal.faults
        return None


def _parent(spec: JobSpec, reader: User | None, found: _Found) -> Job | None:
    if spec.parent is None:
        return None
    parent = jobs_visible_to(reader).filter(uid=spec.parent).first() if reader else None
    if parent is None:
        # The same words for what is missing and for what is foreign.
        found.refuse("parent", "unknown_parent", _("Unknown run."))
    return parent


def _flavors(spec: JobSpec, queue: Queue | None, found: _Found) -> tuple[ResourceFlavor, ...]:
    flavors = list(ResourceFlavor.objects.all())
    known = {flavor.name: flavor for flavor in flavors}
    # Kubernetes documents name products by their label.
    by_product = {flavor.label_value: flavor for flavor in flavors} | known
    quota = dict(Quota.objects.filter(queue=queue).values_list("flavor_id", "nominal")) if queue else {}
    granted = [flavor for flavor in known.values() if quota.get(flavor.pk, 0) > 0]
    if not spec.accelerators:
        if queue and not granted:
            found.refuse("accelerators", "no_quota", _("The queue %(queue)s has no GPU quota."), queue=queue.name)
        return tuple(granted)
    for index, name in enumerate(spec.accelerators):
        if name not in by_product:
            text = _("Unknown accelerator. Known are: %(names)s.")
            found.refuse(f"accelerators[{index}]", "unknown_flavor", text, names=", ".join(known) or "-")
    chosen = tuple(by_product[name] for name in spec.accelerators if name in by_product)
    if queue and chosen and not any(flavor in granted for flavor in chosen):
        names = ", ".join(flavor.name for flavor in chosen)
        text = _("The queue %(queue)s has no quota for %(flavors)s.")
        found.refuse("accelerators", "no_quota", text, queue=queue.name, flavors=names)
    return chosen


def _clusters(spec: JobSpec, team: Team, found: _Found) -> tuple[Cluster, ...]:
    """Return the clusters that qualify; an empty tuple means that any does."""
    known = {cluster.name: cluster for cluster in Cluster.objects.filter(is_enabled=True)}
    for index, name in enumerate(spec.clusters):
        if name not in known:
            names = ", ".join(sorted(known)) or "-"
            text = _("Unknown cluster. Known are: %(names)s.")
            found.refuse(f"clusters[{index}]", "unknown_cluster", text, names=names)
    allowed = [known[name] for name in spec.clusters if name in known]
    if spec.volumes:
        allowed = _with_claims(spec, team, allowed or list(known.values()), found)
    return tuple(allowed)


def _with_claims(spec: JobSpec, team: Team, candidates: list[Cluster], found: _Found) -> list[Cluster]:
    """Keep the clusters that have all claims in the team's namespace, if any has; else say which are missing."""
    rows = PersistentClaim.objects.filter(
        cluster__in=candidates, namespace=team.namespace, name__in=[volume.claim for volume in spec.volumes]
    )
    claims = {(row.cluster_id, row.name): row for row in rows}
    wanted = spec.workers if spec.replicas is None else spec.replicas
    for index, volume in enumerate(spec.volumes):
        modes = [set(row.access_modes) for (_cluster, name), row in claims.items() if name == volume.claim]
        if wanted > 1 and modes and not any(mode & {"ReadWriteMany", "ReadOnlyMany"} for mode in modes):
            text = _("%(claim)s can be mounted on one node at a time; %(workers)d workers need a shared claim.")
            found.refuse(f"volumes[{index}].claim", "claim_not_shared", text, claim=volume.claim, workers=wanted)
    names = {volume.claim for volume in spec.volumes}
    complete = [cluster for cluster in candidates if all((cluster.pk, name) in claims for name in names)]
    if not complete:
        found.warnings += _missing_claims(spec, candidates, claims.keys())
    return complete or candidates


def _missing_claims(spec: JobSpec, candidates: list[Cluster], seen: Collection[tuple[int, str]]) -> Iterator[Problem]:
    """Yield a warning for each claim and the clusters that lack it: a pod would wait for it there."""
    for index, volume in enumerate(spec.volumes):
        lacking = sorted(cluster.name for cluster in candidates if (cluster.pk, volume.claim) not in seen)
        if lacking:
            yield rules.missing_claim(index, volume.claim, lacking)


def _check_secrets(spec: JobSpec, team: Team, found: _Found) -> None:
    asked = [(f"secrets[{index}].name", secret.name, secret.key) for index, secret in enumerate(spec.secrets)]
    if spec.image_pull_secret:
        asked.append(("image_pull_secret", spec.image_pull_secret, ""))
    if spec.code and spec.code.secret:
        asked.append(("code.secret", spec.code.secret, ""))
    if not asked:
        return
    listed = dict(TeamSecret.objects.filter(team=team).values_list("name", "keys"))
    for place, name, key in asked:
        if name not in listed:
            text = _("An administrator has not listed the secret %(name)s for this team.")
            found.refuse(place, "secret_not_listed", text, name=name)
        elif key and key not in listed[name]:
            text, keys = _("This secret has the keys: %(keys)s."), ", ".join(listed[name]) or "-"
            found.refuse(place.replace(".name", ".key"), "unknown_secret_key", text, keys=keys)


def _check_size(spec: JobSpec, flavors: tuple[ResourceFlavor, ...], found: _Found) -> None:
    if not spec.gpus_per_worker or not flavors:
        return
    most = dict(
        NodeAccelerator.objects.filter(flavor__in=flavors, node__gone_at=None)
        .values_list("flavor__name")
        .annotate(most=Max("allocatable"))
    )
    # With no node of the flavor in sight there is nothing to compare with: the job waits and says so.
    if most and max(most.values()) < spec.gpus_per_worker:
        flavor, number = max(most.items(), key=lambda item: item[1])
        text = _("%(asked)d GPUs per worker; %(flavor)s nodes offer at most %(most)d.")
        numbers = {"asked": spec.gpus_per_worker, "flavor": flavor, "most": number}
        found.refuse("gpus_per_worker", "too_many_gpus", text, **numbers)
