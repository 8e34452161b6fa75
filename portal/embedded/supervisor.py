"""Keeps the processes of an installation: starts them in order, restarts what dies, stops in reverse."""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from portal.embedded.guard import Guard
from portal.embedded.processes import has_ended, reap_adopted, spawn, sweep

_POLL_S = 0.05
_WATCH_POLL_S = 0.25  # while nothing happens: four cheap look-ups a second
_BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_STEADY_S = 60.0  # a process that lived this long starts its back-off anew
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Service:
    """A process to keep alive. Services of a later stage end before those of an earlier one are asked to."""

    name: str
    command: tuple[str, ...]
    stage: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 10.0
    is_restarted: bool = True


class StopRequestedError(Exception):
    """Somebody asked us to stop while we waited for something."""


class ProcessFailedError(Exception):
    """A process ended, or did not get ready in time. Carries the log to look into."""

    def __init__(self, message: str, log: Path) -> None:
        super().__init__(message)
        self.log = log


@dataclass
class _Kept:
    service: Service
    process: subprocess.Popen[bytes]
    started_at: float
    failures: int = 0
    restart_at: float | None = None
    is_given_up: bool = False


class Supervisor:
    """Starts and keeps processes. A context manager for the main thread: leaving it stops everything.

    logs: folder of one log file for each process. env: the environment of all. say: takes a line for people.
    grace_s: how long the processes may take to stop after we were killed.
    """

    def __init__(
        self, *, logs: Path, env: Mapping[str, str], cwd: Path, say: Callable[[str], None], grace_s: int = 12
    ) -> None:
        self.logs = logs
        self.env = dict(env)
        self._cwd = cwd
        self._say = say
        self._kept: dict[str, _Kept] = {}
        self._tasks: dict[str, subprocess.Popen[bytes]] = {}
        self._guard = Guard(grace_s=grace_s)
        self._stop_requests = 0
        self._old_handlers: dict[
            signal.Signals, signal.Handlers | Callable[[int, FrameType | None], object] | int | None
        ] = {}

    def __enter__(self) -> Self:
        # A flag and no exception: one raised while a process starts would lose sight of that process.
        self._old_handlers = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._guard.close()
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)

    def start(self, service: Service) -> None:
        """Start a process that is to stay."""
        self._kept[service.name] = _Kept(service, self._spawn(service), time.monotonic())

    def begin(self, name: str, command: tuple[str, ...]) -> None:
        """Start a process that is to end by itself; `finish` waits for it."""
        self._tasks[name] = self._spawn(Service(name, command))

    def finish(self, name: str, *, timeout_s: float) -> None:
        """Wait for a process that was begun. Raise ProcessFailedError if it fails or takes too long."""
        process = self._tasks[name]
        self.wait_until(lambda: has_ended(process), what=f"{name} to end", log=self.log_of(name), timeout_s=timeout_s)
        code = self._sweep(self._tasks.pop(name))
        if code:
            raise ProcessFailedError(f"{name} {_how_it_ended(code)}", self.log_of(name))

    def wait_until(
        self, ready: Callable[[], bool], *, what: str, log: Path, timeout_s: float, poll_s: float = _POLL_S
    ) -> None:
        """Wait for a condition. Raise ProcessFailedError after the time-out or when a kept process dies."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self._stop_requests:
                raise StopRequestedError
            self._raise_if_one_died()
            if time.monotonic() > deadline:
                raise ProcessFailedError(f"waited {timeout_s:.0f} s in vain for {what}", log)
            time.sleep(poll_s)

    def keep(self) -> None:
        """Restart what dies, until somebody asks us to stop."""
        while not self._stop_requests:
            now = time.monotonic()
            for kept in self._kept.values():
                self._look_after(kept, now)
            reap_adopted(kept.process.pid for kept in self._kept.values())
            time.sleep(_WATCH_POLL_S)

    def stop(self) -> None:
        """End all processes, the latest stage first. A second signal meanwhile ends what is left at once."""
        for process in self._tasks.values():
            self._sweep(process)
        self._tasks.clear()
        for stage in sorted({kept.service.stage for kept in self._kept.values()}, reverse=True):
            self._stop_stage([kept for kept in reversed(self._kept.values()) if kept.service.stage == stage])
        self._kept.clear()
        reap_adopted(())

    def log_of(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.logs / f"{name}.log"

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- the handler's signature
        self._stop_requests += 1

    def _spawn(self, service: Service) -> subprocess.Popen[bytes]:
        process = spawn(
            service.command,
            log=self.log_of(service.name),
            env={**self.env, **service.env},
            cwd=self._cwd,
            # The signal of a clean stop: at our death each process takes its own children along.
            death_signal=service.stop_signal,
        )
        self._guard.add(process.pid)
        return process

    def _sweep(self, process: subprocess.Popen[bytes]) -> int:
        code = sweep(process)
        self._guard.remove(process.pid)
        return code

    def _raise_if_one_died(self) -> None:
        for name, kept in self._kept.items():
            if has_ended(kept.process):
                raise ProcessFailedError(f"{name} {_how_it_ended(self._sweep(kept.process))}", self.log_of(name))

    def _look_after(self, kept: _Kept, now: float) -> None:
        if kept.is_given_up:
            return
        if kept.restart_at is None and has_ended(kept.process):
            self._plan_restart(kept, now)
        elif kept.restart_at is not None and now >= kept.restart_at:
            kept.process, kept.started_at, kept.restart_at = self._spawn(kept.service), now, None

    def _plan_restart(self, kept: _Kept, now: float) -> None:
        how = _how_it_ended(self._sweep(kept.process))
        name = kept.service.name
        if not kept.service.is_restarted:
            kept.is_given_up = True
            self._say(f"{name} {how} (log: {self.log_of(name)})")
            return
        kept.failures = 1 if now - kept.started_at > _STEADY_S else kept.failures + 1
        delay_s = _BACK_OFF_S[min(kept.failures, len(_BACK_OFF_S)) - 1]
        kept.restart_at = now + delay_s
        self._say(f"{name} {how}; it is started again in {delay_s:g} s (log: {self.log_of(name)})")

    def _stop_stage(self, stage: list[_Kept]) -> None:
        asked_at = time.monotonic()
        running = [kept for kept in stage if kept.process.returncode is None]
        for kept in running:
            if not has_ended(kept.process):
                kept.process.send_signal(kept.service.stop_signal)
        while running := [kept for kept in running if not has_ended(kept.process)]:
            waited_s = time.monotonic() - asked_at
            for kept in running:
                if waited_s > kept.service.stop_timeout_s or self._stop_requests > 1:
                    self._say(f"{kept.service.name} did not stop in {waited_s:.0f} s and is killed")
                    self._sweep(kept.process)
            time.sleep(_POLL_S)
        for kept in stage:
            self._sweep(kept.process)


def _how_it_ended(code: int) -> str:
    return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
