"""Level L1, Kubernetes 1.37 with the gate GenericWorkload: kube-scheduler binds all pods of a gang or none.

It comes on top of gates or of the policy, which say where each rank goes; the PodGroup says that no rank goes there
alone. The group exists before the Job is opened, gated pods hold it until the last one was released, and then one look
at the nodes decides for all. The Job owns it, so it goes with the Job, once no pod uses it any more.

Tried on Kubernetes 1.37.2: a server without the gate drops `schedulingGroup` from the pods and places them one by one;
a pod whose group is not there is not placed at all; all pods of a group need the priority of their group.
"""

from clusters.manifests.values import Json

API_VERSION = "scheduling.k8s.io/v1beta1"
RESOURCE = "podgroups"


def group(metadata: Json, *, size: int, priority_class_name: str | None) -> Json:
    """The PodGroup of a gang of `size` pods. Its name, in the metadata, is that of the attempt."""
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": size}}}
    if priority_class_name is not None:
        spec["priorityClassName"] = priority_class_name
    return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def grouped(pod_spec: Json, name: str) -> Json:
    """The pod spec as that of a member of the group."""
    return {**pod_spec, "schedulingGroup": {"podGroupName": name}}


def is_grouped(pod_spec: Json) -> bool:
    """Whether a pod spec, as a server returned it, still names its group."""
    return bool((pod_spec.get("schedulingGroup") or {}).get("podGroupName"))
