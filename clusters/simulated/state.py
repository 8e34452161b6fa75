"""Saves the cluster about once a second when it changed, and reads it back at start."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import orjson

from clusters.simulated.kubelet import Kubelets
from clusters.simulated.world import World

logger = logging.getLogger(__name__)

_EVERY_S = 1.0


def read_state(path: Path | None) -> dict[str, Any] | None:
    """None where there is nothing to read; an unreadable file raises ValueError."""
    if path is None or not path.exists():
        return None
    state: dict[str, Any] = orjson.loads(path.read_bytes())
    return state


def restore(world: World, kubelets: Kubelets, state: dict[str, Any]) -> None:
    """Takes over devices and running timers; the store was loaded before the world was made."""
    for uid, (node, indexes) in state["devices"].items():
        world.devices.restore(uid, node, indexes)
    kubelets.timers.load(state["timers"])


class StateFile:
    """Write-behind of one world."""

    def __init__(self, path: Path, world: World, kubelets: Kubelets) -> None:
        self._path = path
        self._world = world
        self._kubelets = kubelets
        self._planned = False
        world.store.subscribe(lambda _change: self._plan())

    def save(self) -> None:
        """Replaces the file in one step, so that a crash leaves the old or the new state."""
        self._planned = False
        state = {
            **self._world.store.dump(),
            "devices": self._world.devices.dump(),
            "timers": self._kubelets.timers.dump(),
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(orjson.dumps(state))
        fresh.replace(self._path)

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_later(_EVERY_S, self._save_quietly)

    def _save_quietly(self) -> None:
        try:
            self.save()
        except OSError:
            logger.exception("could not save %s", self._path)
