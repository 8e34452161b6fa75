"""Which priorities a team may use."""

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from portal.core.errors import Fault, InvalidInputError
from portal.identity.models import Team
from quotas.models import PriorityClass, PriorityGrant


def ladder() -> QuerySet[PriorityClass]:
    """All classes, highest first."""
    return PriorityClass.objects.order_by("-value")


def priorities_for(team: Team) -> QuerySet[PriorityClass]:
    """The classes that a team may use, highest first: the open ones and those it holds a grant for."""
    granted = PriorityGrant.objects.filter(priority_class=OuterRef("pk"), team=team)
    return ladder().filter(Q(is_open=True) | Exists(granted))


def priority_for(team: Team, name: str | None) -> PriorityClass:
    """Return the class of that name, or the default when none is named.

    Raises InvalidInputError with code `unknown_priority` or `priority_not_allowed`; the message lists what is allowed.
    """
    # Compared here, since the ladder is short and Postgres refuses some strings that people send.
    chosen = next((rung for rung in ladder() if (rung.name == name if name else rung.is_default)), None)
    if chosen is None:
        raise _refusal(team, name or "", code="unknown_priority")
    if not priorities_for(team).filter(pk=chosen.pk).exists():
        raise _refusal(team, chosen.name, code="priority_not_allowed")
    return chosen


def _refusal(team: Team, name: str, *, code: str) -> InvalidInputError:
    allowed = ", ".join(priorities_for(team).values_list("name", flat=True))
    if code == "priority_not_allowed":
        message = _("Team %(team)s may not use priority %(priority)s. Allowed: %(allowed)s.")
    elif name:
        message = _("There is no priority %(priority)s. Allowed for team %(team)s: %(allowed)s.")
    else:
        message = _("There is no default priority; name one. Allowed for team %(team)s: %(allowed)s.")
    numbers = {"team": team.name, "priority": name, "allowed": allowed or "-"}
    return InvalidInputError.of([Fault("priority", code, message % numbers, numbers)])
