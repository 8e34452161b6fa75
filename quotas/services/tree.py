"""Edits of the quota tree: cohorts, queues and what they may hold. Administrators only; the views see to that.

Nothing moves to another parent: what is reserved was counted along the path of the day.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from clusters.models import ResourceFlavor
from portal.core import audit
from portal.core.audit import Actor, Target
from portal.core.errors import DomainError, InvalidInputError, StaleEditError
from portal.identity.models import Organization, Team
from quotas.models import Cohort, Queue, Quota, QuotaUsage
from quotas.policy.checks import first_excess, is_too_deep, whole_gpus
from quotas.policy.document import QuotaTreeRows, cohort_id, queue_id
from quotas.policy.limits import MAX_DEPTH, MAX_GPUS
from quotas.selectors.tree import quota_tree
from quotas.services.edits import announce, change, clean_name, one_at_a_time

Owner = Cohort | Queue


class AboveParentError(DomainError):
    """Children would hold more than their parent. `numbers`: parent, flavor, nominal, children."""

    code = "above_parent"
    status = 422


@dataclass(frozen=True, slots=True)
class QuotaEdit:
    """A stored edit: the row (None once removed) and what the person should know about it."""

    quota: Quota | None
    warnings: tuple[str, ...] = ()


@transaction.atomic
def create_cohort(*, actor: Actor, organization: Organization, name: str, parent: Cohort | None = None) -> Cohort:
    """Add a cohort below another, or as a root. Raise InvalidInputError."""
    one_at_a_time()
    name = clean_name(name, Cohort.objects.all())
    if parent is not None:
        _check_parent(parent, organization)
    cohort = Cohort.objects.create(organization=organization, name=name, parent=parent)
    _record(actor, "cohort.created", cohort, after={"name": name, "parent": str(parent or "")})
    return cohort


@transaction.atomic
def create_queue(*, actor: Actor, team: Team, cohort: Cohort, name: str) -> Queue:
    """Add a queue of a team; its first one becomes its default. Raise InvalidInputError."""
    one_at_a_time()
    name = clean_name(name, Queue.objects.all())
    if cohort.organization_id != team.organization_id:
        raise InvalidInputError({"cohort": [_("The cohort belongs to another organization than the team.")]})
    is_first = not Queue.objects.filter(team=team, is_default=True).exists()
    queue = Queue.objects.create(team=team, cohort=cohort, name=name, is_default=is_first)
    _record(actor, "queue.created", queue, after={"name": name, "cohort": cohort.name, "is_default": is_first})
    return queue


@transaction.atomic
def rename(*, actor: Actor, owner: Owner, name: str, expected_version: int) -> None:
    """Give a cohort or queue another name. Raise InvalidInputError, StaleEditError."""
    one_at_a_time()
    name = clean_name(name, type(owner).objects.exclude(pk=owner.pk))
    before = owner.name
    change(owner, expected_version, {"name": name})
    _record(actor, f"{_kind(owner)}.renamed", owner, before={"name": before}, after={"name": name})


@transaction.atomic
def set_paused(*, actor: Actor, queue: Queue, is_paused: bool, expected_version: int) -> None:
    """Stop starting jobs of a queue, or go on. What runs keeps running. Raise StaleEditError."""
    change(queue, expected_version, {"is_paused": is_paused})
    _record(actor, "queue.paused" if is_paused else "queue.resumed", queue, after={"is_paused": is_paused})


@transaction.atomic
def make_default(*, actor: Actor, queue: Queue, expected_version: int) -> None:
    """Make a queue the one that its team's jobs go to when they name none. Raise StaleEditError."""
    one_at_a_time()
    Queue.objects.filter(team_id=queue.team_id, is_default=True).exclude(pk=queue.pk).update(is_default=False)
    change(queue, expected_version, {"is_default": True})
    _record(actor, "queue.made_default", queue, after={"is_default": True})


@transaction.atomic
def remove(*, actor: Actor, owner: Owner, expected_version: int) -> None:
    """Delete a cohort or queue with its quota. Raise DomainError (`in_use`) while anything needs it, StaleEditError."""
    one_at_a_time()
    target = _target(owner)
    change(owner, expected_version, {})  # nobody may have changed what the person thinks to delete
    if QuotaUsage.objects.filter(**{_kind(owner): owner}, used__gt=0).exists():
        raise DomainError(_("%(name)s still holds GPUs.") % {"name": owner.name}, code="in_use")
    if isinstance(owner, Queue) and owner.is_default and Queue.objects.filter(team=owner.team_id).count() > 1:
        text = _("%(name)s is the default of its team; make another queue the default first.")
        raise DomainError(text % {"name": owner.name}, code="in_use")
    try:
        owner.delete()
    except ProtectedError as error:
        text = _(
            "%(name)s cannot be removed: a cohort must be empty and a queue must have no jobs, past ones included."
        )
        raise DomainError(text % {"name": owner.name}, code="in_use") from error
    audit.record(actor, f"{target.type}.removed", target, before={"name": target.label})
    announce()


@transaction.atomic
def set_quota(
    *, actor: Actor, owner: Owner, flavor: ResourceFlavor, nominal: object, expected_version: int
) -> QuotaEdit:
    """Set how many whole GPUs of a flavor a cohort or queue may hold.

    expected_version: the version that was seen, 0 where there was no quota yet. Less than is in use is allowed:
    nothing new starts until enough has ended, and a warning says so.
    Raise InvalidInputError, AboveParentError, StaleEditError (`numbers`: mine, stored, and both versions).
    """
    one_at_a_time()
    gpus = _checked(nominal)
    stored = Quota.objects.filter(**{_kind(owner): owner}, flavor=flavor).first()
    _check_version(owner, flavor, stored, expected_version, mine=gpus)
    tree = quota_tree(owner_organization_id(owner))
    _check_sums(tree.with_nominal((_node_id(owner), flavor.pk), gpus), owner, flavor)
    before = None if stored is None else stored.nominal
    if stored is None:
        stored = Quota.objects.create(**{_kind(owner): owner}, flavor=flavor, nominal=gpus)
    elif before != gpus:
        change(stored, expected_version, {"nominal": gpus})
    _record(actor, "quota.set", owner, before={flavor.name: before}, after={flavor.name: gpus})
    return QuotaEdit(stored, _overuse(tree, owner, flavor, gpus))


@transaction.atomic
def remove_quota(*, actor: Actor, owner: Owner, flavor: ResourceFlavor, expected_version: int) -> QuotaEdit:
    """Take a quota away: a queue then has none, a cohort no cap. Raise AboveParentError, StaleEditError."""
    one_at_a_time()
    stored = Quota.objects.filter(**{_kind(owner): owner}, flavor=flavor).first()
    _check_version(owner, flavor, stored, expected_version, mine=None)
    if stored is None:
        return QuotaEdit(None)
    tree = quota_tree(owner_organization_id(owner))
    _check_sums(tree.with_nominal((_node_id(owner), flavor.pk), None), owner, flavor)
    stored.delete()
    _record(actor, "quota.removed", owner, before={flavor.name: stored.nominal}, after={flavor.name: None})
    return QuotaEdit(None, _overuse(tree, owner, flavor, 0) if isinstance(owner, Queue) else ())


def owner_organization_id(owner: Owner) -> int:
    """Return the organization whose tree a cohort or queue stands in."""
    return owner.organization_id if isinstance(owner, Cohort) else owner.cohort.organization_id


def _check_parent(parent: Cohort, organization: Organization) -> None:
    if parent.organization_id != organization.pk:
        raise InvalidInputError({"parent": [_("The parent belongs to another organization.")]})
    if is_too_deep(quota_tree(organization.pk), cohort_id(parent.pk)):
        text = _("Cohorts are at most %(limit)d deep.") % {"limit": MAX_DEPTH}
        raise InvalidInputError({"parent": [text]})


def _checked(nominal: object) -> int:
    gpus = whole_gpus(nominal)
    if gpus is None:
        text = _("Write whole GPUs, from 0 to %(limit)d, in digits 0-9.") % {"limit": MAX_GPUS}
        raise InvalidInputError({"nominal": [text]})
    return gpus


def _check_version(
    owner: Owner, flavor: ResourceFlavor, stored: Quota | None, expected: int, *, mine: int | None
) -> None:
    version, nominal = (0, None) if stored is None else (stored.version, stored.nominal)
    if version == expected:
        return
    numbers: dict[str, int | str] = {
        "owner": owner.name,
        "flavor": flavor.name,
        "mine": "-" if mine is None else mine,
        "mine_version": expected,
        "stored": "-" if nominal is None else nominal,
        "stored_version": version,
    }
    text = _(
        "Somebody else changed %(owner)s, %(flavor)s meanwhile: it is %(stored)s now (version %(stored_version)d); "
        "yours is %(mine)s (from version %(mine_version)d)."
    )
    raise StaleEditError(text % numbers, field="nominal", numbers=numbers)


def _check_sums(tree: QuotaTreeRows, owner: Owner, flavor: ResourceFlavor) -> None:
    excess = first_excess(tree, _node_id(owner), flavor.pk)
    if excess is None:
        return
    numbers: dict[str, int | str] = {
        "parent": excess.parent.name,
        "flavor": flavor.name,
        "children": excess.children,
        "nominal": excess.nominal,
    }
    text = _("The children of %(parent)s would hold %(children)d %(flavor)s GPUs, but %(parent)s has %(nominal)d.")
    raise AboveParentError(text % numbers, field="nominal", numbers=numbers)


def _overuse(tree: QuotaTreeRows, owner: Owner, flavor: ResourceFlavor, nominal: int) -> tuple[str, ...]:
    used = tree.used.get((_node_id(owner), flavor.pk), 0)
    if used <= nominal:
        return ()
    text = _(
        "%(owner)s holds %(used)d %(flavor)s GPUs, %(over)d above its %(nominal)d: nothing new starts until they end."
    )
    numbers = {"owner": owner.name, "flavor": flavor.name, "used": used, "over": used - nominal, "nominal": nominal}
    return (text % numbers,)


def _record(
    actor: Actor,
    action: str,
    owner: Owner,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    audit.record(actor, action, _target(owner), before=before, after=after)
    announce()


def _target(owner: Owner) -> Target:
    team_id = owner.team_id if isinstance(owner, Queue) else None
    return Target(type=_kind(owner), id=str(owner.pk), label=owner.name, team_id=team_id)


def _kind(owner: Owner) -> str:
    return "queue" if isinstance(owner, Queue) else "cohort"


def _node_id(owner: Owner) -> str:
    return queue_id(owner.pk) if isinstance(owner, Queue) else cohort_id(owner.pk)
