"""The demo's own jobs: a small steady load, so that pages have something to show. Each is labelled synthetic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from jobs.models import Job
from jobs.services import intake, submit
from portal.core.audit import SYSTEM
from portal.core.errors import DomainError
from portal.identity.models import Team, User

LABEL = "demo"
# How many are submitted at most in one go, so that a fresh demo fills up over a minute.
AT_ONCE = 3

TRAINING = {"kind": "training", "image": "pytorch/pytorch:2.5-cuda12.4", "command": ["torchrun", "train.py"]}
SERVING = {"kind": "inference", "image": "registry.example/models/chat:1.4", "port": 8080, "service_port": 80}


@dataclass(frozen=True, slots=True)
class Recipe:
    """One kind of synthetic job."""

    team: str
    owner: str
    document: Mapping[str, object]


def _training(name: str, workers: int, gpus: int, flavor: str, run_s: int, **more: object) -> dict[str, object]:
    return {
        **TRAINING,
        "name": name,
        "workers": workers,
        "gpus_per_worker": gpus,
        "accelerators": [flavor],
        "cpu": {"request": "16", "limit": "32"},
        "memory": {"request": "64Gi", "limit": "128Gi"},
        "env": {"SIM_RUN_S": str(run_s), "SIM_CHECKPOINT_EVERY_S": "60"},
        **more,
    }


def _serving(name: str, replicas: int, flavor: str) -> dict[str, object]:
    return {**SERVING, "name": name, "replicas": replicas, "gpus_per_worker": 1, "accelerators": [flavor]}


RACK = {"mode": "prefer", "level": "rack"}
ONE_RACK = {"mode": "require", "level": "rack"}
OOM = {"SIM_RUN_S": "240", "SIM_EXIT_CODE_RANK": "1:137"}
RECIPES: Sequence[Recipe] = (
    Recipe("vision", "alice", _training("vit-large", 4, 8, "h100", 1500, topology=RACK)),
    Recipe("vision", "bob", _training("sweep-lr", 1, 2, "a100", 420, priority="development")),
    Recipe("speech", "charlie", _training("asr-base", 2, 8, "a100", 900)),
    Recipe("vision", "bob", _training("tokenizer", 1, 1, "l40s", 300)),
    Recipe("speech", "charlie", _training("tts-finetune", 2, 4, "h100", 700)),
    Recipe("vision", "alice", _training("oom-hunt", 2, 4, "a100", 240, env=OOM)),
    Recipe("vision", "bob", _training("distill", 2, 8, "h100", 1100, topology=ONE_RACK)),
    Recipe("speech", "charlie", _training("diarize", 1, 4, "l40s", 500)),
)
SERVICES: Sequence[Recipe] = (
    Recipe("vision", "alice", _serving("segment-api", 3, "l40s")),
    Recipe("speech", "charlie", _serving("asr-api", 2, "a100")),
)


def refill() -> int:
    """Submit what is missing of the steady load; return how many jobs that was.

    Of each recipe one job lives at most: else the long and large ones would pile up and leave people no quota.
    """
    live = Job.objects.filter(is_synthetic=True).exclude(state__in=Job.FINAL)
    names = set(live.values_list("name", flat=True))
    submitted = 0
    for recipe in (*SERVICES, *RECIPES):
        if recipe.document["name"] not in names and submitted < AT_ONCE:
            submitted += _submit(recipe)
    return submitted


@transaction.atomic
def _submit(recipe: Recipe) -> bool:
    team = Team.objects.filter(slug=recipe.team).first()
    owner = User.objects.filter(username=recipe.owner).first()
    if team is None or owner is None:
        return False
    labels = {LABEL: "refill"}
    try:
        spec = intake.read_document({**recipe.document, "labels": labels}, team=team)
        job = submit.submit_job(actor=SYSTEM, owner=owner, request=submit.resolve(spec, team=team))
    except DomainError:
        # Somebody changed the demo's policy: then it keeps up less.
        return False
    return bool(Job.objects.filter(pk=job.pk).update(is_synthetic=True))
