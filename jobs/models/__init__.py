"""Rows of the demand: jobs, their attempts, what each holds, and why."""

from jobs.models.attempt import Attempt
from jobs.models.cycle import Cycle, Decision
from jobs.models.event import JobEvent
from jobs.models.incident import Incident
from jobs.models.job import Job, JobName
from jobs.models.placement import Allocation

__all__ = ["Allocation", "Attempt", "Cycle", "Decision", "Incident", "Job", "JobEvent", "JobName"]
