"""How often somebody tried lately."""

from django.db import models


class AttemptCounter(models.Model):
    """Tries of one kind since the start of the window. The key is a digest: no name or address is kept."""

    key = models.CharField(max_length=64, primary_key=True)
    count = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.count} since {self.since}"
