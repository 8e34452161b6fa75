"""Rows of the supply: clusters, nodes, what runs on them, what they measure."""

from clusters.models.cluster import Cluster, Dispatch, TopologyLevel
from clusters.models.fault import NodeFault, NodeMaintenance
from clusters.models.finding import ClusterFinding, Severity
from clusters.models.flavor import ResourceFlavor
from clusters.models.node import NEEDS_LOOK, Node, NodeAccelerator, NodeEvent, closed_nodes
from clusters.models.observed import ObservedObject, ObservedPod, PersistentClaim
from clusters.models.telemetry import GpuSample, JobMinute, NodeMinute

__all__ = [
    "NEEDS_LOOK",
    "Cluster",
    "ClusterFinding",
    "Dispatch",
    "GpuSample",
    "JobMinute",
    "Node",
    "NodeAccelerator",
    "NodeEvent",
    "NodeFault",
    "NodeMaintenance",
    "NodeMinute",
    "ObservedObject",
    "ObservedPod",
    "PersistentClaim",
    "ResourceFlavor",
    "Severity",
    "TopologyLevel",
    "closed_nodes",
]
