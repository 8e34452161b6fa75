"""One cycle: lease -> snapshot -> decide -> apply. Also the only room that times its phases."""

import hashlib
import os
import socket
import time

import structlog

from jobs.engine import apply, seats, snapshot
from jobs.engine.cycle_lease import LEASE, TTL_S
from jobs.models import Cycle
from jobs.scheduler.decide import decide
from portal.core import clock, lease

log = structlog.get_logger(__name__)


def run_once() -> Cycle | None:
    """Run one cycle. None: another one runs, or nothing waits."""
    if not snapshot.anything_waits() and not seats.waiting().exists():
        return None
    token = lease.take(LEASE, holder=f"{socket.gethostname()}:{os.getpid()}", ttl_s=TTL_S)
    if token is None:
        return None
    try:
        return _run(token)
    finally:
        lease.give_back(LEASE, token)


def _run(token: int) -> Cycle | None:
    started_at = clock.now()
    begin = time.perf_counter()
    loaded = snapshot.load()
    seats.seat_schedules(loaded, token)
    if not loaded.snapshot.workloads:
        return None
    loaded_at = time.perf_counter()
    outcome = decide(loaded.snapshot)
    decided_at = time.perf_counter()
    cycle = Cycle.objects.create(
        started_at=started_at,
        snapshot_ms=_milliseconds(loaded_at - begin),
        decide_ms=_milliseconds(decided_at - loaded_at),
        pending=len(loaded.snapshot.workloads),
        hosts=len(loaded.snapshot.hosts.ids),
        digest=_digest(loaded.snapshot.quota.nominal.tobytes()),
    )
    admitted = apply.apply_outcome(cycle, loaded, outcome, token)
    cycle.admitted = admitted
    cycle.apply_ms = _milliseconds(time.perf_counter() - decided_at)
    cycle.save(update_fields=["admitted", "apply_ms"])
    log.info("cycle", number=cycle.pk, pending=cycle.pending, admitted=admitted, decide_ms=cycle.decide_ms)
    return cycle


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _digest(policy: bytes) -> str:
    return hashlib.sha256(policy).hexdigest()
