"""SUPPLY: what exists and what it shows."""

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    """SUPPLY: what exists and what it shows."""

    name = "clusters"
