"""The rules of an API server hold for whatever a spec is rendered to, at creation and at release."""

import copy
from collections.abc import Callable, Iterable, Mapping

from hypothesis import HealthCheck, given, settings

from clusters.manifests import patches
from clusters.manifests.values import Json
from clusters.simulated.validation.jobs import job_causes
from clusters.simulated.validation.pods import pod_spec_causes, pod_update_causes
from clusters.simulated.validation.workloads import replicated_causes, service_causes
from jobs.jobspec.fields import JobSpec
from tests.jobspec.rendered import objects_of
from tests.jobspec.test_fuzz import SPECS
from tests.manifests import json_patch

RULES: Mapping[str, Callable[[Json], Iterable[object]]] = {
    "Job": job_causes,
    "Deployment": replicated_causes,
    "Service": service_causes,
}


@given(SPECS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_object_is_valid_and_every_pod_can_be_released(spec: JobSpec) -> None:
    objects = objects_of(spec)
    for item in objects:
        assert not list(RULES[item["kind"]](item))
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": copy.deepcopy(objects[0]["spec"]["template"]["spec"])}
    released = json_patch.apply(pod, patches.release(pod, "node-a", "muster.internal"))
    assert not list(pod_update_causes(pod["spec"], released["spec"]))
    assert not list(pod_spec_causes(released["spec"]))
