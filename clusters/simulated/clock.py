"""Wall-clock stamps, and timers whose delays are divided by the clock factor."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(moment: float) -> str:
    """The API's time stamp, in whole seconds as the real server writes it."""
    return _stamp(int(moment))


def rfc3339_fine(moment: float) -> str:
    """With nanosecond digits, as log lines and checkpoint marks carry it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def parse_stamp(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@lru_cache(maxsize=64)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Clock:
    """`factor` 60 lets one simulated minute pass in one real second; time stamps stay real."""

    factor: float = 1.0

    def now(self) -> float:
        return time.time()

    def stamp(self) -> str:
        return _stamp(int(time.time()))

    def real(self, simulated_s: float) -> float:
        """Real seconds that a simulated delay takes."""
        return simulated_s / self.factor

    def simulated(self, real_s: float) -> float:
        return real_s * self.factor

    def call_later(self, simulated_s: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self.real(simulated_s), action)
