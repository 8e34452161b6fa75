"""DCGM text of one node: one line per metric and GPU, labelled with the pod that holds the GPU."""

import hashlib
from dataclasses import replace

from clusters.simulated.containers import rank_of, running_since
from clusters.simulated.devices import gpu_count, pod_gpus
from clusters.simulated.load import Card, Reading, busy, card_of, idle
from clusters.simulated.quantities import amounts
from clusters.simulated.resources import NODES, Obj
from clusters.simulated.world import World

_DEV, _PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"
_HELP = {
    f"{_DEV}SM_CLOCK": "SM clock frequency (in MHz).",
    f"{_DEV}MEMORY_TEMP": "Memory temperature (in C).",
    f"{_DEV}GPU_TEMP": "GPU temperature (in C).",
    f"{_DEV}POWER_USAGE": "Power draw (in W).",
    f"{_DEV}GPU_UTIL": "GPU utilization (in %).",
    f"{_DEV}XID_ERRORS": "Value of the last XID error encountered.",
    f"{_DEV}FB_FREE": "Framebuffer memory free (in MiB).",
    f"{_DEV}FB_USED": "Framebuffer memory used (in MiB).",
    f"{_DEV}FB_RESERVED": "Framebuffer memory reserved (in MiB).",
    f"{_PROF}GR_ENGINE_ACTIVE": "Ratio of time the graphics engine is active.",
    f"{_PROF}PIPE_TENSOR_ACTIVE": "Ratio of cycles the tensor (HMMA) pipe is active.",
    f"{_PROF}DRAM_ACTIVE": "Ratio of cycles the device memory interface is active.",
    f"{_PROF}PCIE_TX_BYTES": "Rate of data transmitted over the PCIe bus (in bytes per second).",
    f"{_PROF}PCIE_RX_BYTES": "Rate of data received over the PCIe bus (in bytes per second).",
    f"{_DEV}NVLINK_BANDWIDTH_TOTAL": "Total number of NVLink bandwidth counters for all lanes.",
}
_RESERVED_MIB = 512
# XID 79: the GPU has fallen off the bus.
_LOST_XID = 79


def metrics_text(world: World, node: str) -> str | None:
    """None where the exporter does not answer: unknown or lost node, or an ordered outage."""
    held = world.store.get(NODES, "", node)
    if held is None or node in world.down_nodes or world.failures.exporter_is_silent(node):
        return None
    status = held.get("status") or {}
    count, offered = gpu_count(amounts(status.get("capacity"))), gpu_count(amounts(status.get("allocatable")))
    if not count:
        return "\n"
    product = (held["metadata"].get("labels") or {}).get("nvidia.com/gpu.product", "")
    card = card_of(product)
    memory = (held["metadata"].get("labels") or {}).get("nvidia.com/gpu.memory", "")
    card = replace(card, memory_mib=int(memory)) if memory.isdigit() else card
    pods = {pod["metadata"]["uid"]: pod for pod in world.store.pods_on(node)}
    holders = world.devices.holders(node)
    lines: dict[str, list[str]] = {name: [] for name in _HELP}
    for index in range(count):
        pod = pods.get(holders.get(index, ""))
        labels = _labels(world.name, node, index, card, pod)
        values = _values(world, (node, index), card, pod)
        if index >= offered:
            values[f"{_DEV}XID_ERRORS"] = _LOST_XID
        values.update(world.failures.forced.get((node, index), {}))
        for name, value in values.items():
            lines[name].append(f"{name}{{{labels}}} {value:.10g}")
    texts = [f"# HELP {name} {_HELP[name]}\n# TYPE {name} gauge\n" + "\n".join(rows) for name, rows in lines.items()]
    return "\n".join(texts) + "\n"


def forced_values(wish: dict[str, float]) -> dict[str, float]:
    """Metric names for the words of the control plane; KeyError names an unknown word."""
    return {_WORDS[word]: value for word, value in wish.items()}


_WORDS = {
    "utilisation": f"{_DEV}GPU_UTIL",
    "memory_used": f"{_DEV}FB_USED",
    "power": f"{_DEV}POWER_USAGE",
    "temperature": f"{_DEV}GPU_TEMP",
    "xid": f"{_DEV}XID_ERRORS",
    "engine": f"{_PROF}GR_ENGINE_ACTIVE",
}


def _labels(cluster: str, node: str, index: int, card: Card, pod: Obj | None) -> str:
    digest = hashlib.sha256(f"{cluster}/{node}/{index}".encode()).hexdigest()
    uuid = f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    labels = (
        f'gpu="{index}",UUID="{uuid}",pci_bus_id="00000000:{7 + index * 8:02X}:00.0",device="nvidia{index}",'
        f'modelName="{card.name}",Hostname="{node}",DCGM_FI_DRIVER_VERSION="570.86.15"'
    )
    if pod is None:
        return labels
    meta, container = pod["metadata"], _gpu_container(pod)
    return f'{labels},container="{container}",namespace="{meta["namespace"]}",pod="{meta["name"]}"'


def _gpu_container(pod: Obj) -> str:
    listed = pod["spec"]["containers"]
    for container in listed:
        limits = (container.get("resources") or {}).get("limits") or {}
        if gpu_count(amounts(limits)):
            return str(container["name"])
    return str(listed[0]["name"])


def _values(world: World, place: tuple[str, int], card: Card, pod: Obj | None) -> dict[str, float]:
    reading = _reading(world, place, card, pod)
    used = round(reading.memory_used)
    return {
        f"{_DEV}SM_CLOCK": round(reading.clock),
        f"{_DEV}MEMORY_TEMP": round(reading.memory_temperature),
        f"{_DEV}GPU_TEMP": round(reading.temperature),
        f"{_DEV}POWER_USAGE": round(reading.power, 3),
        f"{_DEV}GPU_UTIL": round(reading.utilisation),
        f"{_DEV}XID_ERRORS": 0,
        f"{_DEV}FB_FREE": max(0, card.memory_mib - used - _RESERVED_MIB),
        f"{_DEV}FB_USED": used,
        f"{_DEV}FB_RESERVED": _RESERVED_MIB,
        f"{_PROF}GR_ENGINE_ACTIVE": reading.engine,
        f"{_PROF}PIPE_TENSOR_ACTIVE": reading.tensor,
        f"{_PROF}DRAM_ACTIVE": reading.dram,
        f"{_PROF}PCIE_TX_BYTES": round(reading.pcie),
        f"{_PROF}PCIE_RX_BYTES": round(reading.pcie * 0.8),
        f"{_DEV}NVLINK_BANDWIDTH_TOTAL": round(reading.tensor * 400_000) if pod and pod_gpus(pod) > 1 else 0,
    }


def _reading(world: World, place: tuple[str, int], card: Card, pod: Obj | None) -> Reading:
    node, index = place
    seed, now = f"{node}/{index}", world.clock.now()
    started = _started(world, pod) if pod else None
    if pod is None or started is None:
        return idle(card, seed, now)
    serving = pod["spec"]["restartPolicy"] == "Always"
    ran = world.clock.simulated(max(0.0, now - started))
    return busy(card, f"{pod['metadata']['uid']}/{rank_of(pod)}/{index}", ran, serving=serving)


def _started(world: World, pod: Obj) -> float | None:
    return running_since(world.started, pod, _gpu_container(pod))
