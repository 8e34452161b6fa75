"""Child processes that cannot outlive us, and the ways to end them with all that they started."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_CAN_PEEK = hasattr(os, "waitid")  # not on macOS before Python 3.13


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, with its output appended to `log`.

    The kernel sends it `death_signal` when the *thread* that called this ends, however it ends: call this
    from the main thread. On systems other than Linux nothing does that.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    setpriv = shutil.which("setpriv")
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 -- the commands are written in this package
            tied(command, death_signal=death_signal),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=None if setpriv else _tie_by_prctl(death_signal),
        )


def tied(command: Sequence[str], *, death_signal: signal.Signals) -> list[str]:
    """Return `command` behind setpriv, which asks for `death_signal` at our death and becomes the command."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return list(command)
    return [setpriv, "--pdeathsig", death_signal.name.removeprefix("SIG"), "--", *command]


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has ended; it stays a zombie, so that its process group's number stays ours."""
    if process.returncode is not None or not _CAN_PEEK:
        return process.poll() is not None
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def sweep(process: subprocess.Popen[bytes]) -> int:
    """Kill what is left of the process and its group, reap it, return its exit code (negative: a signal)."""
    if process.returncode is None or not _CAN_PEEK:
        signal_group(process, signal.SIGKILL)
        process.wait()
        _wait_until(lambda: not _group_lives(process.pid), timeout_s=1)
    return process.returncode


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to all processes of the child's group; none left is no error."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):  # macOS refuses a group that is one zombie
        return


def end(process: subprocess.Popen[bytes], *, by: signal.Signals, timeout_s: float) -> int:
    """Ask the process to end, wait, kill what is left, and return its exit code (negative: signal)."""
    if not has_ended(process):
        process.send_signal(by)
        _wait_until(lambda: has_ended(process), timeout_s=timeout_s)
    return sweep(process)


def reap_adopted(ours: Iterable[int]) -> None:
    """Reap orphans that became our children, which happens to the first process of a container alone."""
    if os.getpid() != 1:
        return
    known = set(ours)
    while found := _ended_child():
        if found in known:
            return
        os.waitpid(found, 0)


def _ended_child() -> int | None:
    try:
        info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return info.si_pid if info else None


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _wait_until(done: Callable[[], bool], *, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)


def _tie_by_prctl(death_signal: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # looked up here: after the fork nothing may be loaded

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)

    return tie
