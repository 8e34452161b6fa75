"""WHO: people, teams, tokens."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """People, teams, tokens."""

    name = "portal.identity"
