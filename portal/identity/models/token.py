"""API tokens: shown once, kept as a digest."""

from django.db import models
from knox.models import AbstractAuthToken


class ApiToken(AbstractAuthToken):  # type: ignore[misc]  # the library ships no types
    """A personal token. `digest` is the primary key; `token_key` is its visible start."""

    name = models.CharField(max_length=80)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
