"""One node: is it ready, who holds it, what it measures, what happened to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from clusters.forms import USUAL_MINUTES, MaintenanceForm, QuarantineForm
from clusters.models import Node, NodeAccelerator
from clusters.permissions import can_administer_supply
from clusters.selectors.effects import Effect
from clusters.selectors.nodes import NodeDetail, node_detail
from clusters.selectors.topology import Holder
from clusters.selectors.trouble import fault_sentence
from clusters.telemetry.charts import GpuNow, NodeMeasurements, node_measurements
from clusters.views.clusters import holders_of
from portal.core import clock
from portal.core.http import Request
from portal.core.publish import stream_url
from portal.identity.models import User

Context = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GpuLine:
    """One GPU that reports, and what holds it; None: nobody of ours."""

    gpu: GpuNow
    holder: Holder | None


@dataclass(frozen=True, slots=True)
class Resource:
    """How much of a resource the node can give, and what is taken. Whole numbers of `unit`."""

    name: str
    unit: str
    allocatable: int
    ours: int
    foreign: int

    @property
    def free(self) -> int:
        """What is left."""
        return max(0, self.allocatable - self.ours - self.foreign)

    @property
    def parts(self) -> list[tuple[str, float]]:
        """The shares of a bar."""
        return [("active", self.ours), ("neutral", self.foreign), ("", self.free)]


@login_required
@require_GET
def node(request: Request, cluster_name: str, name: str) -> HttpResponse:
    """Show a node, also one that left."""
    now = clock.now()
    detail = node_detail(cluster_name, name, now) if name.isprintable() else None
    if detail is None:
        raise Http404
    shown = detail.node
    holders = holders_of(shown.cluster, request.user, node_id=shown.pk).get(shown.pk, [])
    measured = node_measurements(shown, now)
    context = {
        "detail": detail,
        "node": shown,
        "cluster": shown.cluster,
        "state": _state(detail),
        "holders": holders,
        "gpus": _gpus(measured, holders),
        "resources": _resources(shown, detail.accelerators, holders),
        "charts": measured.charts,
        "faults": [(fault, fault_sentence(fault)) for fault in detail.faults],
        "maintenance": detail.maintenance,
        "maintenance_state": detail.maintenance.state(now) if detail.maintenance else "",
        "effects": _effects(detail, request.user, now),
        "may_administer": can_administer_supply(request.user),
        "quarantine_form": QuarantineForm(auto_id="quarantine_%s"),
        "maintenance_form": MaintenanceForm(auto_id="maintenance_%s"),
        "live_url": stream_url(f"cluster:{shown.cluster_id}", f"telemetry:{shown.cluster_id}"),
    }
    return render(request, "clusters/node.html#live" if request.htmx else "clusters/node.html", context)


def _state(detail: NodeDetail) -> str:
    met = {check.code: check.is_met for check in detail.checks}
    if not met["present"]:
        return "gone"
    if not met["cluster"]:
        return "stale"
    if not met["ready"]:
        return "not_ready"
    words = {"whole_node": "faulty", "trusted": "quarantined", "in_use": "maintenance", "open": "cordoned"}
    return next((word for code, word in words.items() if not met[code]), "ready")


def _effects(detail: NodeDetail, user: User, now: datetime) -> list[Effect]:
    """Ask the floor above what the maintenance does, for administrators also before there is one."""
    asked = detail.maintenance
    if asked is None and not can_administer_supply(user):
        return []
    deadline_at = asked.deadline_at if asked else now + timedelta(minutes=USUAL_MINUTES)
    answer: list[Effect] = import_string(settings.MUSTER_MAINTENANCE_EFFECTS)(detail.node, user, deadline_at, now)
    return answer


def _gpus(measured: NodeMeasurements, holders: Sequence[Holder]) -> list[GpuLine]:
    by_run = {holder.run: holder for holder in holders if holder.run}
    return [GpuLine(gpu, by_run.get(gpu.run)) for gpu in measured.gpus]


def _resources(node: Node, accelerators: Sequence[NodeAccelerator], holders: Sequence[Holder]) -> list[Resource]:
    gpus = [
        Resource(each.flavor.title, "", each.allocatable, each.held, each.foreign)
        for each in accelerators
        if each.capacity
    ]
    cpu, memory = sum(holder.cpu_milli for holder in holders), sum(holder.memory_mib for holder in holders)
    return [
        *gpus,
        Resource(_("CPU"), _("cores"), node.cpu_milli // 1000, -(-cpu // 1000), -(-node.foreign_cpu_milli // 1000)),
        Resource(
            _("Memory"), _("GiB"), node.memory_mib // 1024, -(-memory // 1024), -(-node.foreign_memory_mib // 1024)
        ),
        Resource(_("Pods"), "", node.pods, sum(holder.pods for holder in holders), node.foreign_pods),
    ]
