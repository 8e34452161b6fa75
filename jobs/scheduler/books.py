"""What one cycle keeps: the fixed topology, and the books that admissions change."""

from jobs.scheduler.feasibility import FitTable
from jobs.scheduler.ledger import Ledger
from jobs.scheduler.quota import QuotaBook
from jobs.scheduler.request import RequestBook
from jobs.scheduler.shapes import Gates
from jobs.scheduler.topology import build_topology
from jobs.scheduler.types import Snapshot


class Books:
    """Topology, ledger, quota, gates, fits and requests of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Open the books. Raise ValueError if the quota parents form a circle."""
        self.snapshot = snapshot
        self.topology = build_topology(snapshot)
        self.ledger = Ledger(snapshot, self.topology)
        self.quota = QuotaBook(snapshot.quota)
        self.gates = Gates(snapshot, self.topology, self.ledger)
        self.fits = FitTable(self.gates, self.ledger)
        self.requests = RequestBook(self.topology)
