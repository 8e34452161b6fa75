"""Leases: who may do a thing alone, until when."""

from django.db import models


class Lease(models.Model):
    """A right to act alone. The token only grows: a write that carries an old one is stale."""

    name = models.CharField(max_length=60, primary_key=True)
    token = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=120, blank=True)
    expires_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} #{self.token}"
