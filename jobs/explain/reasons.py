"""From a Reason to one translated sentence with its numbers, for people who have not read the scheduler.

The numbers' keys are listed beside each ReasonCode. CPU is told in cores and memory in GiB.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from jobs.scheduler.types import CLUSTER, NODE, NeverLimit, Reason, ReasonCode

Numbers = Mapping[str, Any]
MIB_PER_GIB = 1024
MILLI_PER_CORE = 1000


def explain(reason: Reason) -> str:
    """Return the sentence of a reason. Raise KeyError if a number is missing."""
    return _SENTENCES[reason.code](reason.numbers)


def level_name(level: str) -> str:
    """Return a topology level's name for people; an administrator's own names are shown as they are."""
    known = {
        CLUSTER: pgettext("topology level", "cluster"),
        "zone": pgettext("topology level", "zone"),
        "block": pgettext("topology level", "block"),
        "rack": pgettext("topology level", "rack"),
        NODE: pgettext("topology level", "node"),
    }
    return known.get(level, level)


def _blocked(numbers: Numbers) -> str:
    if numbers.get("cause") == "queue_paused":
        return _("The queue %(queue)s is paused; this job is number %(position)s in it.") % numbers
    return _("It may not start now; it is number %(position)s in its queue.") % numbers


def _accelerator(numbers: Numbers) -> str:
    if not numbers["nodes"]:
        return _("The allowed clusters have no nodes.")
    return (
        ngettext(
            "The %(nodes)s node in the allowed clusters does not offer %(flavor)s.",
            "None of the %(nodes)s nodes in the allowed clusters offers %(flavor)s.",
            numbers["nodes"],
        )
        % numbers
    )


def _never_fits(numbers: Numbers) -> str:
    limit = NeverLimit(numbers["limit"])
    named = {**numbers, "level": level_name(numbers["where"])}
    if limit is NeverLimit.CPU:
        named |= {key: _cores(numbers[key]) for key in ("asked", "most")}
    if limit is NeverLimit.MEMORY:
        named |= {key: _gib(numbers[key]) for key in ("asked", "most")}
    return str(_NEVER_SENTENCES[limit]) % named


def _turn(numbers: Numbers) -> str:
    return (
        ngettext(
            "It would have fitted, but %(started_ahead)s job ahead of it just took %(gpus_started)s GPUs. "
            "It is number %(position)s in its queue (%(gpus_ahead)s GPUs asked before it).",
            "It would have fitted, but %(started_ahead)s jobs ahead of it just took %(gpus_started)s GPUs. "
            "It is number %(position)s in its queue (%(gpus_ahead)s GPUs asked before it).",
            numbers["started_ahead"],
        )
        % numbers
    )


def _quota(numbers: Numbers) -> str:
    return (
        _("The quota of %(queue)s is short: %(used)s of %(nominal)s %(flavor)s GPUs are used and it needs %(asked)s.")
        % numbers
    )


def _cpu(numbers: Numbers) -> str:
    return _short(numbers, _("CPU"), _cores)


def _memory(numbers: Numbers) -> str:
    return _short(numbers, _("memory"), _gib)


def _pods(numbers: Numbers) -> str:
    return _short(numbers, _("pod slots"), str)


def _short(numbers: Numbers, resource: str, amount: Callable[[int], str]) -> str:
    return ngettext(
        "Short of %(resource)s on %(nodes)s node that could take it otherwise: a worker needs %(needed)s and that "
        "node has %(best_free)s free, so %(fits)s of %(workers)s workers fit.",
        "Short of %(resource)s on %(nodes)s nodes that could take it otherwise: a worker needs %(needed)s and the "
        "best of them has %(best_free)s free, so %(fits)s of %(workers)s workers fit.",
        numbers["nodes"],
    ) % {
        **numbers,
        "resource": resource,
        "needed": amount(numbers["needed"]),
        "best_free": amount(numbers["best_free"]),
    }


def _cordoned(numbers: Numbers) -> str:
    closed = ngettext(
        "It would fit if %(nodes)s cordoned or tainted node were open",
        "It would fit if %(nodes)s cordoned or tainted nodes were open",
        numbers["nodes"],
    )
    return _usable(closed, numbers)


def _not_ready(numbers: Numbers) -> str:
    closed = ngettext(
        "It would fit if %(nodes)s more node were ready",
        "It would fit if %(nodes)s more nodes were ready",
        numbers["nodes"],
    )
    return _usable(closed, numbers)


def _usable(closed: str, numbers: Numbers) -> str:
    if not numbers["flavor"]:
        return f"{closed}." % numbers
    gpus = _("%(usable)s of %(total)s %(flavor)s GPUs are usable and it needs %(asked)s.")
    return f"{closed}: {gpus}" % numbers


def _cluster_stale(numbers: Numbers) -> str:
    if not numbers["flavor"]:
        return _("It would fit on the cluster %(cluster)s, but nothing is heard of it at the moment.") % numbers
    return (
        _(
            "It would fit on the cluster %(cluster)s (%(free)s %(flavor)s GPUs free, it needs %(asked)s), "
            "but nothing is heard of that cluster at the moment."
        )
        % numbers
    )


def _cluster_too_old(numbers: Numbers) -> str:
    if not numbers["flavor"]:
        return _("It would fit on the cluster %(cluster)s, but its Kubernetes is too old: nothing is placed there.") % (
            numbers
        )
    return (
        _(
            "It would fit on the cluster %(cluster)s (%(free)s %(flavor)s GPUs free, it needs %(asked)s), "
            "but the Kubernetes of that cluster is too old: nothing is placed there."
        )
        % numbers
    )


def _capacity(numbers: Numbers) -> str:
    return (
        ngettext(
            "%(free)s %(flavor)s GPU is free and it needs %(asked)s.",
            "%(free)s %(flavor)s GPUs are free and it needs %(asked)s.",
            numbers["free"],
        )
        % numbers
    )


def _fragmentation(numbers: Numbers) -> str:
    needed = ngettext(
        "%(workers)s worker must fit in one %(level)s",
        "%(workers)s workers must fit in one %(level)s",
        numbers["workers"],
    )
    room = ngettext(
        "the best one has room for %(fits)s, on %(free_nodes)s node",
        "the best one has room for %(fits)s, on %(free_nodes)s nodes",
        numbers["free_nodes"],
    )
    free = _("%(free)s %(flavor)s GPUs are free, but not in one place")
    return f"{free}: {needed}, {room}." % {**numbers, "level": level_name(numbers["level"])}


def _cores(milli: int) -> str:
    return _("%(cores)s cores") % {"cores": f"{milli / MILLI_PER_CORE:.3f}".rstrip("0").rstrip(".")}


def _gib(mib: int) -> str:
    return _("%(gib)s GiB") % {"gib": f"{mib / MIB_PER_GIB:.1f}".removesuffix(".0")}


_NEVER_SENTENCES = {
    NeverLimit.LEVEL: gettext_lazy(
        "No cluster has the topology level %(where)s that the job requires (workers: %(asked)s)."
    ),
    NeverLimit.QUOTA: gettext_lazy("It needs at least %(asked)s %(flavor)s GPUs; %(where)s may hold at most %(most)s."),
    NeverLimit.GPUS_PER_NODE: gettext_lazy(
        "%(asked)s GPUs per worker; %(flavor)s nodes in the allowed clusters offer at most %(most)s."
    ),
    NeverLimit.CPU: gettext_lazy("%(asked)s per worker; the nodes that could take it have at most %(most)s."),
    NeverLimit.MEMORY: gettext_lazy("%(asked)s per worker; the nodes that could take it have at most %(most)s."),
    NeverLimit.PODS: gettext_lazy("%(asked)s pod slot per worker; the nodes that could take it have at most %(most)s."),
    NeverLimit.WORKERS: gettext_lazy(
        "At least %(asked)s workers must fit in one %(level)s; the largest holds %(most)s even when it is empty."
    ),
}
_SENTENCES: dict[ReasonCode, Callable[[Numbers], str]] = {
    ReasonCode.BLOCKED: _blocked,
    ReasonCode.ACCELERATOR: _accelerator,
    ReasonCode.NEVER_FITS: _never_fits,
    ReasonCode.TURN: _turn,
    ReasonCode.QUOTA: _quota,
    ReasonCode.CPU: _cpu,
    ReasonCode.MEMORY: _memory,
    ReasonCode.PODS: _pods,
    ReasonCode.CORDONED: _cordoned,
    ReasonCode.NOT_READY: _not_ready,
    ReasonCode.CLUSTER_STALE: _cluster_stale,
    ReasonCode.CLUSTER_TOO_OLD: _cluster_too_old,
    ReasonCode.CAPACITY: _capacity,
    ReasonCode.FRAGMENTATION: _fragmentation,
}
