"""What an administrator asks of the spaces of a cluster. The worker does it: no page talks to a cluster."""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from clusters.models import Cluster
from portal.core import clock
from portal.core.audit import Actor, Target, record
from portal.core.enqueue import enqueue
from portal.core.errors import DomainError, StaleEditError
from portal.identity.models import Team
from quotas.models import Space, Tenancy

TASK = "quotas.tasks.sync_spaces"


@transaction.atomic
def ask_to_apply(*, actor: Actor, cluster: Cluster, team: Team | None) -> Space:
    """Have a space applied anew, whoever changed it. Raise DomainError for a cluster that takes no part."""
    if not cluster.is_enabled:
        raise DomainError(_("A disabled cluster is not changed: it takes no part."), code="cluster_disabled")
    space = Space.objects.get_or_create(cluster=cluster, team=team)[0]
    space.asked_at = clock.now()
    Space.objects.filter(pk=space.pk).update(asked_at=space.asked_at)
    record(actor, "space.apply_asked", target_of(cluster, team))
    enqueue(TASK)
    return space


@transaction.atomic
def ask_to_apply_all(*, actor: Actor, cluster: Cluster) -> None:
    """Have what all teams share and the space of each team applied, whoever made what is there."""
    now = clock.now()
    teams = [None, *Team.objects.order_by("pk").values_list("pk", flat=True)]
    Space.objects.bulk_create((Space(cluster=cluster, team_id=team) for team in teams), ignore_conflicts=True)
    asked = Space.objects.filter(cluster=cluster).update(asked_at=now)
    record(actor, "space.apply_asked", target_of(cluster, None), after={"spaces": asked})
    enqueue(TASK)


@transaction.atomic
def keep_spaces(*, actor: Actor, cluster: Cluster, is_kept: bool, version: int) -> None:
    """Say whether the portal applies by itself what is missing or has changed here. Raise StaleEditError."""
    _change(actor, cluster, version, "space.keeping_changed", {"is_kept": is_kept})


@transaction.atomic
def set_guard(*, actor: Actor, cluster: Cluster, guard: str, version: int) -> None:
    """Say what the cluster's policies shall do about by-passes. Raise StaleEditError.

    They are applied by an administrator of the cluster: who may write policies may take them away.
    """
    _change(actor, cluster, version, "space.guard_changed", {"guard": guard})


def _change(actor: Actor, cluster: Cluster, version: int, action: str, values: Mapping[str, object]) -> None:
    tenancy = Tenancy.objects.get_or_create(cluster=cluster)[0]
    rows = Tenancy.objects.filter(pk=tenancy.pk, version=version)
    if not rows.update(version=F("version") + 1, updated_at=clock.now(), **values):
        raise StaleEditError(numbers={"yours": version, "current": tenancy.version})
    before = {name: getattr(tenancy, name) for name in values}
    if before != values:
        record(actor, action, target_of(cluster, None), before=before, after=values)
    enqueue(TASK)


def target_of(cluster: Cluster, team: Team | None) -> Target:
    """Return a space as the audit log names it."""
    of = team.namespace if team else "priority classes"
    return Target(
        type="space", id=f"{cluster.name}/{of}", label=f"{of} on {cluster.name}", team_id=team.pk if team else None
    )
