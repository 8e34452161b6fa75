"""Resource quantities as whole thousandths, and what pods ask for."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from clusters.simulated.resources import Obj

Amounts = dict[str, int]

_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+|[numkMGTPE]|)$")
_SCALES: dict[str, int | Decimal] = {
    "": 1, "n": Decimal(1) / 10**9, "u": Decimal(1) / 10**6, "m": Decimal(1) / 1000, "k": 10**3, "M": 10**6,
    "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
    "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def parse_quantity(text: object) -> int:
    """Thousandths of the unit, rounded up; ValueError for what is not a quantity."""
    return _parse(str(text))


@lru_cache(maxsize=4096)
def _parse(text: str) -> int:
    match = _QUANTITY.match(text)
    if match is None:
        pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise ValueError(f"quantities must match the regular expression '{pattern}'")
    number, suffix = match.groups()
    scale = Decimal(10) ** int(suffix[1:]) if len(suffix) > 1 and suffix[0] in "eE" else _SCALES[suffix]
    thousandths = Decimal(number) * scale * 1000
    return int(-(-thousandths // 1))


def show(thousandths: int) -> str:
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def amounts(quantities: Obj | None) -> Amounts:
    return {name: parse_quantity(value) for name, value in (quantities or {}).items()}


def add(total: Amounts, more: Amounts, sign: int = 1) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + sign * value


def pod_requests(spec: Obj, section: str = "requests") -> Amounts:
    """What a pod holds on its node: containers together or the largest init container, plus overhead."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _of(container, section))
    for name, value in _largest(spec.get("initContainers") or (), section).items():
        total[name] = max(total.get(name, 0), value)
    if section == "requests":
        add(total, amounts(spec.get("overhead")))
    return total


def is_extended(name: str) -> bool:
    """A device resource such as nvidia.com/gpu: whole numbers, request equal to limit."""
    domain = name.rpartition("/")[0]
    return bool(domain) and not domain.endswith("kubernetes.io")


def is_overcommittable(name: str) -> bool:
    """Whether a request may be below its limit: not for devices, and not for huge pages."""
    return not is_extended(name) and not name.startswith("hugepages-")


def _of(container: Obj, section: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(section))


def _largest(containers: Iterable[Obj], section: str) -> Amounts:
    largest: Amounts = {}
    for container in containers:
        for name, value in _of(container, section).items():
            largest[name] = max(largest.get(name, 0), value)
    return largest
