"""One thread a cluster: a cluster that hangs keeps its own thread waiting, and the pass goes on without it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import structlog
from django.db import connections

Item = TypeVar("Item")
log = structlog.get_logger(__name__)

# How long a pass waits for its lanes; one that takes longer goes on by itself.
PATIENCE_S = 1.0
_threads: dict[int, ThreadPoolExecutor] = {}
_running: dict[int, "Future[None]"] = {}
_lock = threading.Lock()


def busy() -> set[int]:
    """The clusters whose lane still works in this process."""
    with _lock:
        return {key for key, future in _running.items() if not future.done()}


def serve(items: Mapping[int, Sequence[Item]], work: Callable[[Sequence[Item]], None]) -> None:
    """Let `work` handle the items of each cluster in its lane; return when all are done, or soon after."""
    with _lock:
        for key, these in items.items():
            lane = _threads.setdefault(key, ThreadPoolExecutor(1, thread_name_prefix=f"lane-{key}"))
            _running[key] = lane.submit(_work, work, these)
        started = [_running[key] for key in items]
    wait(started, timeout=PATIENCE_S)


def _work(work: Callable[[Sequence[Item]], None], items: Sequence[Item]) -> None:
    try:
        work(items)
    except Exception:  # nobody waits for this thread; what it had claimed falls free by itself
        log.exception("lane_broke")
    finally:
        connections.close_all()
