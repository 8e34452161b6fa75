"""The log of a job that pages read."""

from django.db import models

from jobs.models.job import Job


class JobEvent(models.Model):
    """One thing that happened to a job: a code and its numbers; the sentence is made when it is shown."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    code = models.CharField(max_length=40)
    data = models.JSONField(default=dict)
    actor = models.CharField(max_length=150, blank=True)

    class Meta:
        indexes = [models.Index(fields=["job", "-id"], name="job_event_newest")]

    def __str__(self) -> str:
        return f"{self.code} {self.job_id}"
