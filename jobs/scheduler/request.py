"""A workload without its name, queue and size: equal requests share all that is worked out about a place."""

from typing import NamedTuple

from jobs.scheduler.shapes import Shape
from jobs.scheduler.topology import Topology
from jobs.scheduler.types import NO_FLAVOR, SpreadPolicy, TopologyMode, Workload


class Request(NamedTuple):
    """Shapes in order of flavor preference, and the levels to try from `lowest` (narrow) to `widest`.

    number: tells the requests of a cycle apart at the price of an int. Levels are numbers, lowest >= widest.
    flat: hosts are chosen without regard to levels.
    """

    number: int
    shapes: tuple[Shape, ...]
    lowest: int
    widest: int
    spread: bool
    flat: bool


class RequestBook:
    """The distinct requests of a cycle."""

    def __init__(self, topology: Topology) -> None:
        """Start empty."""
        self._topology = topology
        self._requests: dict[tuple[object, ...], Request | None] = {}

    def of(self, workload: Workload) -> Request | None:
        """Return the one request that equal workloads share, None if no cluster has the level that it requires."""
        key = _asked(workload)
        if key not in self._requests:
            self._requests[key] = _request(len(self._requests), workload, self._topology)
        return self._requests[key]


def _asked(workload: Workload) -> tuple[object, ...]:
    """Return what makes two requests equal."""
    return (
        workload.gpus_per_worker,
        workload.flavors,
        workload.cpu_milli,
        workload.memory_mib,
        workload.topology,
        workload.level,
        workload.spread,
        workload.is_service,
        workload.clusters,
        workload.excluded_hosts,
        workload.tolerated,
    )


def _request(number: int, workload: Workload, topology: Topology) -> Request | None:
    """Translate topology mode and spread policy into levels.

    A gang that packs starts at one host. One that spreads starts at the level it names, since a narrower place would
    be no spread; without a level it spreads over the whole cluster.
    """
    named = topology.levels.index(workload.level) if workload.level in topology.levels else None
    required = workload.topology is TopologyMode.REQUIRE
    if required and named is None:
        return None
    spread = _spreads(workload)
    narrow = (named or 0) if spread else topology.node
    lowest = 0 if workload.topology is TopologyMode.NONE else narrow
    widest = (named or 0) if required else 0
    needed_label = 0 if topology.fully_labelled[widest] else widest  # equal shapes share their figures
    return Request(
        number=number,
        shapes=tuple(_shape(workload, flavor, needed_label) for flavor in flavors_of(workload)),
        lowest=lowest,
        widest=widest,
        spread=spread,
        flat=workload.topology is TopologyMode.NONE and not spread,
    )


def flavors_of(workload: Workload) -> tuple[int, ...]:
    """Return the flavors to try in order; NO_FLAVOR for a workload without GPUs that names none."""
    return workload.flavors or (() if workload.gpus_per_worker else (NO_FLAVOR,))


def _spreads(workload: Workload) -> bool:
    auto = workload.spread is SpreadPolicy.AUTO and workload.is_service
    return auto or workload.spread is SpreadPolicy.SPREAD


def _shape(workload: Workload, flavor: int, level: int) -> Shape:
    return Shape(
        flavor=flavor,
        gpus=workload.gpus_per_worker,
        cpu=workload.cpu_milli,
        memory=workload.memory_mib,
        pods=1,
        level=level,
        clusters=workload.clusters,
        excluded=workload.excluded_hosts,
        tolerated=workload.tolerated,
    )
