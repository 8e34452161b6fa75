"""One cycle: snapshot in, decisions out. Pure: the same snapshot gives the same outcome in any order of rows.

Workloads are looked at by priority, time, identifier. Each starts whole, on its first flavor that has quota
up to the root and a place in one cluster, and takes its GPUs, CPU, memory, pod slots and quota at once; a
worse flavor now beats waiting for a better one, and one that cannot start does not stop those behind it.

Each that waits gets one reason: the first row that holds, looked at for the first flavor of its list that
could ever start it (rows 5 to 14 are asked on the books as the cycle leaves them).

| #  | code            | holds when                                                                         |
| -- | --------------- | ---------------------------------------------------------------------------------- |
| 1  | blocked         | the caller says so (queue paused); its own code and numbers are passed on          |
| 2  | accelerator     | no host in the allowed clusters offers any of the flavors                          |
| 3  | never_fits      | on no flavor does it fit on empty, open hosts within the nominal quota             |
| 4  | turn            | on some flavor it would have fitted when the cycle began                           |
| 5  | quota           | its queue or a cohort above has no room for the least number of workers            |
| 6  | cpu             | it would fit if it needed no CPU                                                   |
| 7  | memory          | ... no CPU and no memory                                                           |
| 8  | pods            | ... no CPU, no memory and no pod slots                                             |
| 9  | cordoned        | it would fit if cordoned and tainted hosts were open                               |
| 10 | not_ready       | ... and hosts that are not ready                                                   |
| 11 | cluster_stale   | ... and hosts of clusters that are not heard of                                    |
| 12 | cluster_too_old | ... and hosts of clusters whose Kubernetes is too old                              |
| 13 | capacity        | the free GPUs of the hosts it may use are fewer in sum than it asks for            |
| 14 | fragmentation   | enough are free in sum, but no one place holds it                                  |

What the user can change comes before what the administrator can (6-8 before 9-12), and both before waiting.
"""

from typing import NamedTuple

from jobs.scheduler.books import Books
from jobs.scheduler.gang import start
from jobs.scheduler.never import NeverFinder
from jobs.scheduler.ordering import in_order
from jobs.scheduler.reasons import ReasonFinder, Turn
from jobs.scheduler.request import Request
from jobs.scheduler.types import Admission, Outcome, Reason, ReasonCode, Snapshot, Wait, Workload

NEVER = (ReasonCode.ACCELERATOR, ReasonCode.NEVER_FITS)


class Waiting(NamedTuple):
    """A workload that was not admitted, with what this cycle had started before its turn."""

    workload: Workload
    request: Request | None
    started_ahead: int
    gpus_started: int


def decide(snapshot: Snapshot) -> Outcome:
    """Return who starts where, and why the rest waits. Raise ValueError on a circle in the quota tree."""
    books = Books(snapshot)
    admissions: list[Admission] = []
    waiting: list[Waiting] = []
    gpus_started = 0
    for workload in in_order(snapshot.workloads):
        request = books.requests.of(workload)
        admission = None if workload.blocked else start(books, workload, request)
        if admission is None:
            waiting.append(Waiting(workload, request, len(admissions), gpus_started))
            continue
        admissions.append(admission)
        gpus_started += admission.workers * workload.gpus_per_worker
    return Outcome(tuple(admissions), _waits(books, waiting))


def can_ever_fit(snapshot: Snapshot, workload: Workload) -> Reason | None:
    """Return why the workload could never start (accelerator or never_fits), None if it could some day."""
    books = Books(snapshot)
    flavor = NeverFinder(books).possible_flavor(workload, books.requests.of(workload))
    return flavor if isinstance(flavor, Reason) else None


def _waits(books: Books, waiting: list[Waiting]) -> tuple[Wait, ...]:
    finder = ReasonFinder(books)
    ahead: dict[int, tuple[int, int]] = {}  # queue -> jobs and GPUs that wait before the next one
    waits = []
    for workload, request, started_ahead, gpus_started in waiting:
        jobs, gpus = ahead.get(workload.queue, (0, 0))
        reason = finder.reason(workload, request, Turn(jobs + 1, gpus, started_ahead, gpus_started))
        if reason.code in NEVER:
            waits.append(Wait(workload.id, reason, None, 0))
            continue
        waits.append(Wait(workload.id, reason, jobs + 1, gpus))
        ahead[workload.queue] = (jobs + 1, gpus + workload.workers * workload.gpus_per_worker)
    return tuple(waits)
