"""What the mirror reads of a document, field by field; all others are skipped where they stand. Pure.

Every field may be missing or null: documents come from API servers of any age, and bookmarks carry next to nothing.
"""

from typing import Any

from msgspec import Struct, field

Text = str | None
# Quantities by resource: as text, but nobody forbids numbers.
Quantities = dict[str, Any] | None


class Shape(Struct, rename="camel", gc=False):
    """A part of a document. None of them leads back to itself, so the cycle collector has nothing to look for."""


class Metadata(Shape):
    """Of every object; those without uid and name are bookmarks."""

    uid: str = ""
    name: str = ""
    namespace: Text = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    resource_version: Text = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None


class Owner(Shape):
    """What an object belongs to."""

    uid: Text = None
    controller: bool | None = None


class OwnedMetadata(Metadata):
    """Of an object that another one may have made."""

    owner_references: list[Owner] | None = None


class Amounts(Shape):
    """What a container or a pod asks for."""

    requests: Quantities = None
    limits: Quantities = None


class Container(Shape):
    """One container of a pod's specification."""

    resources: Amounts | None = None
    restart_policy: Text = None


class Gate(Shape):
    """What keeps a pod from being scheduled."""

    name: Text = None


class PodSpec(Shape):
    """What a pod should be. Its affinity is kept whole."""

    node_name: Text = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: Amounts | None = None
    overhead: Quantities = None
    scheduling_gates: list[Gate] | None = None
    affinity: dict[str, Any] | None = None


class Condition(Shape):
    """One condition of an object."""

    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None
    last_transition_time: Text = None


class Stretch(Shape):
    """A time in which a container waits or runs, or how it ended."""

    reason: Text = None
    message: Text = None
    exit_code: int | None = None
    started_at: Text = None
    finished_at: Text = None


class ContainerState(Shape):
    """One of the three."""

    waiting: Stretch | None = None
    running: Stretch | None = None
    terminated: Stretch | None = None


class ContainerStatus(Shape):
    """How one container fares, and how it fared before it started again."""

    restart_count: int | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(Shape):
    """How a pod fares."""

    phase: Text = None
    pod_ip: Text = field(default=None, name="podIP")
    reason: Text = None
    message: Text = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Shape):
    """A pod, ours or not."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class Taint(Shape):
    """What keeps pods off a node."""

    key: Text = None
    value: Text = None
    effect: Text = None


class NodeSpec(Shape):
    """What was decided about a node."""

    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class Address(Shape):
    """One address of a node."""

    type: Text = None
    address: Text = None


class NodeInfo(Shape):
    """What runs on a node."""

    kubelet_version: Text = None
    container_runtime_version: Text = None


class NodeStatus(Shape):
    """What a node offers, and how it fares."""

    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    node_info: NodeInfo | None = None


class Node(Shape):
    """A machine."""

    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ObjectSpec(Shape):
    """Of a Job, CronJob, StatefulSet or Deployment: the rest we wrote ourselves."""

    suspend: bool | None = None


class Object(Shape):
    """A Job, CronJob, StatefulSet or Deployment. Its status is kept whole."""

    metadata: OwnedMetadata
    spec: ObjectSpec | None = None
    status: dict[str, Any] | None = None


class About(Shape):
    """What an event is about."""

    uid: Text = None


class Event(Shape):
    """Something that happened to an object."""

    metadata: Metadata
    type: Text = None
    reason: Text = None
    message: Text = None
    involved_object: About | None = None
    last_timestamp: Text = None
    event_time: Text = None


class ClaimSpec(Shape):
    """What a volume claim asks for."""

    access_modes: list[str] | None = None
    resources: Amounts | None = None
    storage_class_name: Text = None


class ClaimStatus(Shape):
    """What a volume claim got."""

    phase: Text = None
    capacity: Quantities = None


class Claim(Shape):
    """A volume claim."""

    metadata: Metadata
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


Document = Pod | Node | Object | Event | Claim
