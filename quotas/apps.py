"""ENTITLEMENT: who may use how much."""

from django.apps import AppConfig


class QuotasConfig(AppConfig):
    """ENTITLEMENT: who may use how much."""

    name = "quotas"
