"""Whether the nodes carry what the portal goes by: a product that has a flavor, levels of the topology, a taint."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusters.manifests import names
from clusters.models import Severity
from clusters.services.findings import Finding

# What the device plug-ins of the makers call their accelerators; other extended resources (network cards) are none.
_ACCELERATORS = (
    "nvidia.com/gpu",
    "nvidia.com/mig-",
    "amd.com/gpu",
    "gpu.intel.com/",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
)
_PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
)
# So many kinds of unknown devices are told; an administrator who has defined those comes back for the rest.
_TOLD = 20


@dataclass(frozen=True, slots=True)
class Machine:
    """A node, as far as these checks look at it."""

    labels: Mapping[str, str]
    extended: Mapping[str, int]
    taint_keys: Collection[str]


@dataclass(frozen=True, slots=True)
class Selector:
    """Which nodes a flavor takes."""

    resource_name: str
    label_key: str
    label_value: str

    def takes(self, machine: Machine) -> bool:
        """Return whether the node offers the flavor."""
        return (
            machine.labels.get(self.label_key) == self.label_value and machine.extended.get(self.resource_name, 0) > 0
        )


def with_accelerators(machines: Iterable[Machine], selectors: Collection[Selector]) -> list[Machine]:
    """Return the nodes that offer a device which can be an accelerator, by its name or because a flavor says so."""
    resources = {selector.resource_name for selector in selectors}
    return [machine for machine in machines if any(_accelerators(machine, resources))]


def accelerators(machines: Sequence[Machine], selectors: Collection[Selector]) -> Finding:
    """Find nodes whose devices no flavor takes: nobody can use these."""
    resources = {selector.resource_name for selector in selectors}
    unknown: Counter[tuple[str, str]] = Counter()
    count = 0
    for machine in machines:
        if any(selector.takes(machine) for selector in selectors):
            continue
        count += 1
        for resource in _accelerators(machine, resources):
            unknown[resource, _product(machine)] += 1
    most = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
    numbers: dict[str, object] = {
        "nodes": len(machines),
        "unknown": count,
        "kinds": [[resource, product, nodes] for (resource, product), nodes in most[:_TOLD]],
    }
    return Finding("accelerators", Severity.WARNING if count or not machines else Severity.OK, numbers)


def topology(machines: Sequence[Machine], levels: Sequence[tuple[str, str]]) -> Finding:
    """Count, for each level (its name and label), the nodes that carry its label, in whole per cent of all."""
    if not machines:
        return Finding("topology", Severity.UNKNOWN, {"nodes": 0})
    carried = [(name, key, sum(bool(machine.labels.get(key)) for machine in machines)) for name, key in levels]
    # Rounded down: a hundred means all of them.
    rows = [[name, key, 100 * count // len(machines)] for name, key, count in carried]
    is_patchy = any(count < len(machines) for _name, _key, count in carried)
    return Finding("topology", Severity.WARNING if is_patchy else Severity.OK, {"nodes": len(machines), "levels": rows})


def taint(machines: Sequence[Machine], domain: str) -> Finding:
    """Count the nodes that keep other people's pods away by our taint."""
    key = names.label(domain, "dedicated")
    if not machines:
        return Finding("taint", Severity.UNKNOWN, {"nodes": 0})
    count = sum(key in machine.taint_keys for machine in machines)
    numbers = {"nodes": len(machines), "tainted": count, "key": key}
    return Finding("taint", Severity.OK if count == len(machines) else Severity.WARNING, numbers)


def _accelerators(machine: Machine, resources: Collection[str]) -> list[str]:
    return [
        name
        for name, count in machine.extended.items()
        if count > 0 and (name in resources or name.startswith(_ACCELERATORS))
    ]


def _product(machine: Machine) -> str:
    return next((machine.labels[key] for key in _PRODUCTS if machine.labels.get(key)), "")
