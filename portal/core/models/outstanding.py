"""Messages that were sent and have not been picked up yet."""

from django.db import models


class OutstandingTask(models.Model):
    """At most one message of a looping task waits in the broker; this row says that one does."""

    name = models.CharField(max_length=80, primary_key=True)
    sent_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
