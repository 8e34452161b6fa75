"""The viewsets of this app."""

from jobs.api.jobs import JobViewSet

entries = [("jobs", JobViewSet, "jobs")]
