"""The Celery app: queues and beat, by name."""

import os

from celery import Celery
from kombu.entity import Queue

from portal.core import broker
from portal.env import env

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

broker.install()
app = Celery("muster")
app.config_from_object("django.conf:settings", namespace="CELERY")
QUEUES = ("cycle", "reconcile", "upkeep", "maintenance", "housekeeping", "spaces", "forget", "demo", "default")
app.conf.task_queues = [Queue(name) for name in QUEUES]
app.conf.beat_scheduler = "portal.core.beat:OnceScheduler"
app.conf.beat_max_loop_interval = 1
BEAT_S = env.float("MUSTER_BEAT_S", default=2.0)
app.conf.beat_schedule = {
    "cycle": {"task": "jobs.tasks.run_cycle", "schedule": BEAT_S},
    "reconcile": {"task": "jobs.tasks.reconcile", "schedule": BEAT_S},
    "maintenance": {"task": "jobs.tasks.note_drained_nodes", "schedule": 10.0},
    "upkeep": {"task": "jobs.tasks.housekeeping", "schedule": 60.0},
    "housekeeping": {"task": "clusters.tasks.housekeeping", "schedule": 30.0},
    "spaces": {"task": "quotas.tasks.sync_spaces", "schedule": 30.0},
    "forget": {"task": "portal.core.tasks.forget", "schedule": 60.0},
}
if env.bool("MUSTER_DEMO", default=False) and env.bool("MUSTER_DEMO_LOAD", default=True):
    app.conf.beat_schedule["demo"] = {"task": "portal.seed.tasks.refill_demo", "schedule": 15.0}
app.autodiscover_tasks()
app.autodiscover_tasks(["portal.seed"])
