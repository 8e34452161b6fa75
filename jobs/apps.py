"""DEMAND: who wants what now."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """DEMAND: who wants what now."""

    name = "jobs"
