"""The Celery app: queues and beat, by name."""

import os

from celery import Celery
from kombu.entity import Queue

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("muster")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name) for name in ("cycle", "reconcile", "housekeeping", "default")]
app.conf.beat_scheduler = "portal.core.beat:OnceScheduler"
app.conf.beat_max_loop_interval = 1
app.conf.beat_schedule = {
    "cycle": {"task": "jobs.tasks.run_cycle", "schedule": float(os.environ.get("MUSTER_BEAT_S", "2"))},
    "reconcile": {"task": "jobs.tasks.reconcile", "schedule": float(os.environ.get("MUSTER_BEAT_S", "2"))},
    "housekeeping": {"task": "clusters.tasks.housekeeping", "schedule": 30.0},
}
app.autodiscover_tasks()
