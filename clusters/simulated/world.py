"""What every part of the cluster shares."""

from dataclasses import dataclass, field
from typing import Any

from clusters.simulated.admission import Usage
from clusters.simulated.api import Api
from clusters.simulated.clock import Clock
from clusters.simulated.devices import Devices
from clusters.simulated.failures import Failures
from clusters.simulated.recorder import Recorder
from clusters.simulated.store import Store

VERSION = "v1.36.3+simulated"


@dataclass(slots=True)
class World:
    """Store, rules and switches. Controllers hold a world and never each other."""

    name: str
    store: Store
    clock: Clock
    usage: Usage
    api: Api
    recorder: Recorder
    failures: Failures
    devices: Devices
    git_version: str = VERSION
    down_nodes: set[str] = field(default_factory=set)
    # Status stamps are whole seconds; here is when a container really started and ended, by pod uid and name.
    started: dict[tuple[str, str], float] = field(default_factory=dict)
    ended: dict[tuple[str, str], float] = field(default_factory=dict)

    def version(self) -> dict[str, Any]:
        major, minor = self.git_version.removeprefix("v").split(".")[:2]
        return {
            "major": major,
            "minor": minor,
            "gitVersion": self.git_version,
            "gitCommit": "0000000000000000000000000000000000000000",
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "go1.26.0",
            "compiler": "gc",
            "platform": "linux/amd64",
        }


def make_world(name: str, store: Store, clock: Clock) -> World:
    usage = Usage(store)
    return World(
        name=name,
        store=store,
        clock=clock,
        usage=usage,
        api=Api(store, clock, usage),
        recorder=Recorder(store, clock),
        failures=Failures(),
        devices=Devices(),
    )
