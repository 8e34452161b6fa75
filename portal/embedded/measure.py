"""What a tree of processes costs, read from /proc (Linux)."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessId:
    """A process told apart from a later one that got the same number."""

    pid: int
    started: int  # clock ticks after boot


def process_tree(root: int) -> set[ProcessId]:
    """Return the living processes from `root` downwards."""
    parents = {found.pid: stat for found in _pids() if (stat := _stat(found.pid))}
    tree = {root}
    while more := {pid for pid, stat in parents.items() if int(stat[1]) in tree} - tree:
        tree |= more
    return {ProcessId(pid, int(parents[pid][19])) for pid in tree if pid in parents}


def marked(variable: str) -> set[ProcessId]:
    """Return the living processes whose environment holds this NAME=value, whoever their parent is."""
    wanted = variable.encode()
    return {process for process in _pids() if wanted in _environment(process.pid)}


def living(processes: set[ProcessId]) -> set[ProcessId]:
    """Return those that still live; a zombie does not."""
    return processes & _pids()


def pss_mb(processes: set[ProcessId]) -> float:
    """Return their proportional set size in MB: shared pages count once, divided among their users."""
    return sum(_pss_kib(process.pid) for process in processes) * 1024 / 1e6


def cpu_percent(root: int, *, over_s: float) -> float:
    """Return the tree's use of processor time during the coming seconds, in percent of one core."""
    before, began = _cpu_ticks(root), time.monotonic()
    time.sleep(over_s)
    ticks = _cpu_ticks(root) - before
    return 100 * ticks / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def _cpu_ticks(root: int) -> int:
    """Sum the user and system time of the tree, ended and reaped children included."""
    stats = (_stat(process.pid) for process in process_tree(root))
    return sum(sum(int(ticks) for ticks in stat[11:15]) for stat in stats if stat)


def _pids() -> set[ProcessId]:
    numbers = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return {ProcessId(pid, int(stat[19])) for pid in numbers if (stat := _stat(pid)) and stat[0] != "Z"}


def _stat(pid: int) -> list[str] | None:
    """Return /proc/PID/stat from its third field (state) on: the second may hold blanks."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _pss_kib(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
