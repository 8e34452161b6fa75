"""The load curve of a GPU: smooth, and the same whenever it is computed for the same pod and moment."""

import math
import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    """What a product is like: watts, MiB, MHz."""

    name: str
    idle_w: float
    max_w: float
    memory_mib: int
    clock_mhz: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Percent, MiB, watts, degrees Celsius, MHz, shares of one, bytes per second."""

    utilisation: float
    memory_used: float
    power: float
    temperature: float
    memory_temperature: float
    clock: float
    engine: float
    tensor: float
    dram: float
    pcie: float


_CARDS = (
    ("H200", Card("NVIDIA H200", 76, 700, 143_771, 1980)),
    ("H100", Card("NVIDIA H100 80GB HBM3", 70, 700, 81_559, 1980)),
    ("A100", Card("NVIDIA A100-SXM4-80GB", 56, 400, 81_920, 1410)),
    ("L40S", Card("NVIDIA L40S", 36, 350, 46_068, 2520)),
    ("L4", Card("NVIDIA L4", 16, 72, 23_034, 2040)),
    ("T4", Card("Tesla T4", 14, 70, 15_360, 1590)),
)
_OTHER = Card("GPU", 40, 300, 40_960, 1500)
_WARM_UP_S = 25.0


def card_of(product: str) -> Card:
    return next((card for word, card in _CARDS if word in product), _OTHER)


def idle(card: Card, seed: str, moment: float) -> Reading:
    power = card.idle_w * (1 + 0.04 * _wave(seed, moment, 90))
    temperature = 29 + 3 * _unit(seed) + 0.6 * _wave(seed, moment, 240)
    return Reading(0, 0, power, temperature, temperature + 4, card.clock_mhz * 0.17, 0, 0, 0, 2e4)


def busy(card: Card, seed: str, running_s: float, *, serving: bool) -> Reading:
    """`running_s` is the simulated time since the container started."""
    level = _serving(seed, running_s) if serving else _training(seed, running_s)
    warm = 1 - math.exp(-running_s / 120)
    power = card.idle_w + (card.max_w * 0.93 - card.idle_w) * level
    temperature = 32 + 36 * level * warm + 4 * _unit(seed)
    filled = (0.55 if serving else 0.72) + 0.2 * _unit(seed + "memory")
    used = card.memory_mib * filled * min(1.0, running_s / _WARM_UP_S)
    return Reading(
        utilisation=100 * level,
        memory_used=used,
        power=power,
        temperature=temperature,
        memory_temperature=temperature + 9,
        clock=card.clock_mhz * (1 - 0.08 * level),
        engine=0.97 * level,
        tensor=(0.22 if serving else 0.52) * level,
        dram=0.6 * level,
        pcie=2e6 + 1.4e9 * level,
    )


def _training(seed: str, running_s: float) -> float:
    """High and even after a warm-up, with short dips for checkpoints and validation."""
    if running_s < _WARM_UP_S:
        return 0.05 + 0.85 * (running_s / _WARM_UP_S) ** 2
    level = 0.93 + 0.03 * (_unit(seed) - 0.5) + 0.03 * _wave(seed, running_s, 37)
    # The whole gang saves at once: the dip hangs on the time, its depth on the rank.
    into_dip = (running_s % 180) - 165
    if into_dip > 0:
        level *= 0.35 + 0.25 * _unit(seed + "dip")
    return min(0.99, level)


def _serving(seed: str, running_s: float) -> float:
    """Follows traffic."""
    level = 0.46 + 0.22 * _wave("traffic", running_s, 600) + 0.14 * _wave(seed, running_s, 45)
    return max(0.03, min(0.95, level * min(1.0, running_s / _WARM_UP_S)))


def _wave(seed: str, moment: float, period: float) -> float:
    """Smooth, between -1 and 1."""
    phase = _unit(seed) * math.tau
    return 0.7 * math.sin(moment * math.tau / period + phase) + 0.3 * math.sin(moment * 2.7 * math.tau / period - phase)


def _unit(seed: str) -> float:
    return zlib.crc32(seed.encode()) / 2**32
