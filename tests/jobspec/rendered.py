"""JobSpec -> the objects that a cluster would get, at a place that the tests choose."""

from collections.abc import Mapping

from clusters.manifests import gang, schedule, serve
from clusters.manifests.values import Identity, Json
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.manifest_out import Place, gang_values, schedule_values, serve_values

IDENTITY = Identity(
    name="m-7f3k2-a1",
    namespace="team-vision",
    domain="muster.internal",
    installation="i1",
    run="7f3k2",
    attempt=1,
    epoch=1,
    tenant="vision",
)


def objects_of(
    spec: JobSpec,
    plan: tuple[str, ...] = (),
    *,
    restarts: int = 0,
    node_labels: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Json]:
    """The objects of a spec on NVIDIA nodes; `plan` names the node of each worker that starts."""
    place = Place(
        accelerator_resource="nvidia.com/gpu",
        code_image="git:2",
        workers=len(plan) or spec.workers,
        plan=plan,
        restarts=restarts,
        node_labels=node_labels or {},
    )
    if spec.workload == "cronjob":
        return schedule.objects(schedule_values(spec, IDENTITY, place))
    if spec.kind == "training":
        return gang.objects(gang_values(spec, IDENTITY, place))
    return serve.objects(serve_values(spec, IDENTITY, place))


def container_of(spec: JobSpec) -> Json:
    """The main container of a spec's pods."""
    container: Json = objects_of(spec)[0]["spec"]["template"]["spec"]["containers"][0]
    return container
