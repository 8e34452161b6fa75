"""Filters of job lists, for pages and REST alike."""

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from clusters.models import ResourceFlavor
from jobs.models import Allocation, Job
from portal.core import clock
from portal.core.errors import DomainError

# Words for several states at once.
GROUPS: Mapping[str, tuple[Job.State, ...]] = {
    "live": (Job.State.QUEUED, *Job.HOLDING),
    "over": Job.FINAL,
}
MAX_SEARCH = 100


class FilterError(DomainError):
    """A filter has a value that it does not know."""

    code = "invalid_filter"
    status = 400


def filtered(jobs: QuerySet[Job], params: Mapping[str, str]) -> QuerySet[Job]:
    """Narrow a list by `state kind team queue owner flavor days q label`; unknown names match nothing."""
    if state := params.get("state"):
        jobs = jobs.filter(state__in=_states(state))
    if kind := params.get("kind"):
        jobs = jobs.filter(kind=_one_of("kind", kind, Job.Kind.values))
    for name, column in (("team", "team__slug"), ("queue", "queue__name"), ("owner", "owner__username")):
        if value := params.get(name):
            jobs = jobs.filter(**{column: _text(name, value)})
    if label := params.get("label"):
        key, _sign, value = _text("label", label).partition("=")
        jobs = jobs.filter(Q(labels__contains={key: value}) if value else Q(labels__has_key=key))
    if flavor := params.get("flavor"):
        jobs = _of_flavor(jobs, _text("flavor", flavor))
    if days := params.get("days"):
        jobs = jobs.filter(created_at__gte=clock.now() - timedelta(days=_days(days)))
    if search := params.get("q"):
        jobs = _searched(jobs, _text("q", search))
    return jobs


def _states(value: str) -> list[str]:
    states: list[str] = []
    for word in _text("state", value).split(","):
        states += GROUPS.get(word) or [_one_of("state", word, [*Job.State.values, *GROUPS])]
    return states


def _days(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) <= 4 and int(value)):
        raise FilterError(_("Days are a whole number from 1 to 9999."), field="days")
    return int(value)


def _of_flavor(jobs: QuerySet[Job], name: str) -> QuerySet[Job]:
    """Keep the jobs that name the flavor in their wish, or that have or had GPUs of it."""
    flavor = ResourceFlavor.objects.filter(name=name).first()
    if flavor is None:
        return jobs.none()
    held = Allocation.objects.filter(attempt__job=OuterRef("pk"), flavor=flavor)
    return jobs.filter(Q(flavor_ids__contains=[flavor.pk]) | Exists(held))


def _searched(jobs: QuerySet[Job], text: str) -> QuerySet[Job]:
    name, _dash, number = text.rpartition("-")
    found = Q(name__icontains=text) | Q(uid=text)
    if name and number.isascii() and number.isdecimal() and len(number) < 9:
        found |= Q(name=name, number=int(number))
    return jobs.filter(found)


def _one_of(name: str, value: str, known: list[str]) -> str:
    if value not in known:
        text = _("Unknown %(name)s. Known are: %(known)s.") % {"name": name, "known": ", ".join(known)}
        raise FilterError(text, field=name)
    return value


def _text(name: str, value: str) -> str:
    if len(value) > MAX_SEARCH or "\x00" in value:
        text = _("At most %(most)d characters, none of them NUL.") % {"most": MAX_SEARCH}
        raise FilterError(text, field=name, numbers={"most": MAX_SEARCH})
    return value
