"""The ground: rows and tools that name no noun of the product."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Leases, heartbeats, the audit log."""

    name = "portal.core"
