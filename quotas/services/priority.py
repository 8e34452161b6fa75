"""Edits of the priority ladder and of who may use which rung. Administrators only; the views see to that."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from django.db import transaction
from django.db.models import F, ProtectedError, QuerySet
from django.utils.translation import gettext as _

from portal.core import audit
from portal.core.audit import Actor, Target
from portal.core.errors import DomainError, InvalidInputError
from portal.identity.models import Team
from quotas.models import PriorityClass, PriorityGrant
from quotas.policy.ladder import default_ladder
from quotas.policy.limits import MAX_PRIORITY, RESERVED_PREFIX
from quotas.services.edits import announce, change, one_at_a_time

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,58}[a-z0-9])?", re.ASCII)
_DESCRIPTION_LIMIT = 200


@dataclass(frozen=True, slots=True)
class PriorityValues:
    """What an administrator writes about a class. Higher values go first."""

    name: str
    value: int
    description: str = ""
    is_open: bool = False
    is_default: bool = False


@transaction.atomic
def create_priority(*, actor: Actor, values: PriorityValues, teams: Iterable[Team] | None = None) -> PriorityClass:
    """Add a rung, with grants for the teams. Raise InvalidInputError; system- names belong to Kubernetes."""
    one_at_a_time()
    _check(values, others=PriorityClass.objects.all())
    if values.is_default:
        _take_default()
    rung = PriorityClass.objects.create(**asdict(values))
    _record(actor, "priority.created", rung, after=asdict(values))
    if teams is not None:
        _replace_grants(actor, rung, teams)
    return rung


@transaction.atomic
def edit_priority(
    *,
    actor: Actor,
    rung: PriorityClass,
    values: PriorityValues,
    expected_version: int,
    teams: Iterable[Team] | None = None,
) -> None:
    """Change a rung, and its grants unless `teams` is None; jobs that wait keep the value they came with.

    Raise InvalidInputError, StaleEditError.
    """
    one_at_a_time()
    _check(values, others=PriorityClass.objects.exclude(pk=rung.pk))
    if rung.is_default and not values.is_default:
        raise InvalidInputError({"is_default": [_("Make another class the default instead.")]})
    before = {key: getattr(rung, key) for key in asdict(values)}
    if values.is_default and not rung.is_default:
        _take_default()
    change(rung, expected_version, asdict(values))
    changed = [key for key, value in before.items() if getattr(rung, key) != value]
    after = {key: getattr(rung, key) for key in changed}
    _record(actor, "priority.changed", rung, before={key: before[key] for key in changed}, after=after)
    if teams is not None:
        _replace_grants(actor, rung, teams)


@transaction.atomic
def delete_priority(*, actor: Actor, rung: PriorityClass, expected_version: int) -> None:
    """Remove a rung. Raise DomainError (`in_use`) while it is the default or jobs name it, StaleEditError."""
    one_at_a_time()
    target = _target(rung)
    change(rung, expected_version, {})  # nobody may have changed what the person thinks to delete
    if rung.is_default:
        raise DomainError(
            _("%(name)s is the default; make another class the default first.") % {"name": rung}, code="in_use"
        )
    try:
        rung.delete()
    except ProtectedError as error:
        text = _("%(name)s cannot be removed: jobs use it, past ones included.") % {"name": rung}
        raise DomainError(text, code="in_use") from error
    audit.record(actor, "priority.removed", target, before={"name": target.label})
    announce()


@transaction.atomic
def set_grants(*, actor: Actor, rung: PriorityClass, teams: Iterable[Team], expected_version: int) -> None:
    """Say which teams may use a rung that is not open to all. Raise StaleEditError."""
    one_at_a_time()
    change(rung, expected_version, {})
    _replace_grants(actor, rung, teams)


@transaction.atomic
def install_ladder(*, actor: Actor) -> None:
    """Add the rungs of the default ladder whose names are not there yet; what an administrator changed stays."""
    one_at_a_time()
    has_default = PriorityClass.objects.filter(is_default=True).exists()
    known = set(PriorityClass.objects.values_list("name", flat=True))
    for rung in default_ladder():
        if rung.name not in known:
            values = {**asdict(rung), "is_default": rung.is_default and not has_default}
            create_priority(actor=actor, values=PriorityValues(**values))


def _check(values: PriorityValues, *, others: QuerySet[PriorityClass]) -> None:
    problems: dict[str, list[str]] = {}
    if text := _name_problem(values.name):
        problems["name"] = [text]
    elif others.filter(name=values.name).exists():
        problems["name"] = [_("This name is taken.")]
    if not -MAX_PRIORITY <= values.value <= MAX_PRIORITY:
        problems["value"] = [_("Write a whole number from -%(limit)d to %(limit)d.") % {"limit": MAX_PRIORITY}]
    elif others.filter(value=values.value).exists():
        problems["value"] = [_("Another class has this value.")]
    if len(values.description) > _DESCRIPTION_LIMIT or "\x00" in values.description:
        problems["description"] = [_("Write at most %(limit)d characters.") % {"limit": _DESCRIPTION_LIMIT}]
    if problems:
        raise InvalidInputError(problems)


def _replace_grants(actor: Actor, rung: PriorityClass, teams: Iterable[Team]) -> None:
    before = sorted(rung.grants.values_list("team__slug", flat=True))
    wanted = {team.pk: team for team in teams}
    rung.grants.exclude(team_id__in=wanted).delete()
    grants = [PriorityGrant(priority_class=rung, team=team) for team in wanted.values()]
    PriorityGrant.objects.bulk_create(grants, ignore_conflicts=True)
    after = sorted(team.slug for team in wanted.values())
    _record(actor, "priority.granted", rung, before={"teams": before}, after={"teams": after})


def _name_problem(name: str) -> str:
    if name.startswith(RESERVED_PREFIX):
        return _("Names that start with %(prefix)s are reserved by Kubernetes.") % {"prefix": RESERVED_PREFIX}
    if not _NAME.fullmatch(name):
        return _("Use 1 to 60 lower-case letters, digits and hyphens, starting with a letter.")
    return ""


def _take_default() -> None:
    """Make room for another default: the database allows one."""
    PriorityClass.objects.filter(is_default=True).update(is_default=False, version=F("version") + 1)


def _record(
    actor: Actor,
    action: str,
    rung: PriorityClass,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    audit.record(actor, action, _target(rung), before=before, after=after)
    announce()


def _target(rung: PriorityClass) -> Target:
    return Target(type="priority", id=str(rung.pk), label=rung.name)
