"""Lines of a job's log -> sentences."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.models import Job

Data = Mapping[str, Any]


def sentence(code: str, data: Data, *, is_service: bool = False) -> str:
    """Return what happened, with its numbers. An unknown code, from a newer version, is shown as it is."""
    write = (_OF_SERVICES.get(code) if is_service else None) or _SENTENCES.get(code)
    return write(data) if write else code


def _queued(data: Data) -> str:
    gpus = data.get("gpus", 0)
    if not gpus:
        return _("Queued; a cluster is chosen for it")
    return ngettext("Queued, asks for %(gpus)d GPU", "Queued, asks for %(gpus)d GPUs", gpus) % {"gpus": gpus}


def _admitted(data: Data) -> str:
    return ngettext(
        "Admitted in cycle %(cycle)s: %(workers)s worker on %(cluster)s, within one %(level)s",
        "Admitted in cycle %(cycle)s: %(workers)s workers on %(cluster)s, within one %(level)s",
        data["workers"],
    ) % {key: data[key] for key in ("cycle", "workers", "cluster", "level")}


def _admitted_service(data: Data) -> str:
    return ngettext(
        "Admitted in cycle %(cycle)s: %(workers)s replica on %(cluster)s",
        "Admitted in cycle %(cycle)s: %(workers)s replicas on %(cluster)s",
        data["workers"],
    ) % {key: data[key] for key in ("cycle", "workers", "cluster")}


def _stopping(data: Data) -> str:
    return _("Stopping: %(why)s") % {"why": _why(data)}


def _requeued(data: Data) -> str:
    numbers = {"attempt": data.get("attempt", "?"), "why": _why(data)}
    return _("Queued again after attempt %(attempt)s: %(why)s") % numbers


def _failed(data: Data) -> str:
    if data.get("rank") is None:
        return _("Failed: %(why)s") % {"why": _why(data)}
    return _("Failed on rank %(rank)s, exit code %(exit)s: %(why)s") % {
        "rank": data["rank"],
        "exit": data.get("exit_code") if data.get("exit_code") is not None else "-",
        "why": _why(data),
    }


def _scaled(data: Data) -> str:
    return _("Scaled from %(before)s to %(after)s replicas") % {"before": data["before"], "after": data["after"]}


def _grown(data: Data) -> str:
    count = data.get("replicas", 0)
    return ngettext("Got a place for %(n)d more replica", "Got places for %(n)d more replicas", count) % {"n": count}


def _due(data: Data) -> str:
    text = data.get("due_at") or ""
    if not text:
        return _("made by a person on the cluster")
    return _("due %(time)s") % {"time": date_format(timezone.localtime(datetime.fromisoformat(text)), "j M H:i")}


def _run_made(data: Data) -> str:
    return _("%(run)s was queued (%(due)s)") % {"run": data["run"], "due": _due(data)}


def _run_forbidden(data: Data) -> str:
    numbers = {"run": data["run"], "due": _due(data)}
    return _("A run was left out (%(due)s): %(run)s is not over yet") % numbers


def _run_crowded(data: Data) -> str:
    numbers = {"waiting": data["waiting"], "due": _due(data)}
    return _("A run was left out (%(due)s): %(waiting)s runs of this schedule wait already") % numbers


def _why(data: Data) -> str:
    code, message = data.get("code") or "", data.get("message") or ""
    label = str(Job.Outcome(code).label) if code in Job.Outcome.values else ""
    return " - ".join(part for part in (label, message) if part) or _("the infrastructure failed it")


_SENTENCES: Mapping[str, Callable[[Data], str]] = {
    "queued": _queued,
    "admitted": _admitted,
    "starting": lambda _data: _("Pods are created and wait at their gate"),
    "running": lambda _data: _("All workers run"),
    "cancel_requested": lambda _data: _("Cancel asked for"),
    "cancelled": lambda _data: _("Cancelled"),
    "stopping": _stopping,
    "requeued": _requeued,
    "succeeded": lambda _data: _("Succeeded"),
    "failed": _failed,
    "scaled": _scaled,
    "synthetic": lambda _data: _("Made up for the demo: this job never ran"),
    "grown": _grown,
    "schedule_seated": lambda data: _("Goes to %(cluster)s") % {"cluster": data["cluster"]},
    "schedule_made": lambda data: _("Stands on %(cluster)s as %(name)s") % {k: data[k] for k in ("cluster", "name")},
    "schedule_on": lambda _data: _("Makes runs from now on"),
    "schedule_warning": lambda data: _("The cluster says: %(message)s") % {"message": data["message"]},
    "run_made": _run_made,
    "run_forbidden": _run_forbidden,
    "run_crowded": _run_crowded,
    "run_gone": lambda _data: _("Its Job was deleted on the cluster while it waited"),
    "paused": lambda _data: _("Paused: it makes no runs"),
    "resumed": lambda _data: _("Resumed: it makes runs again"),
}
# Replicas need neither start together nor stand near each other, and a service may begin with some of them.
_OF_SERVICES: Mapping[str, Callable[[Data], str]] = {
    "admitted": _admitted_service,
    "running": lambda _data: _("It serves"),
}
