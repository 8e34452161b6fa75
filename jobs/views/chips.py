"""Filters of a list as chips: every choice is an address, so it can be kept, sent and gone back from."""

from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.models import Job
from jobs.selectors.choices import flavor_names
from portal.core.http import Request

ALL_TEAMS = "all"
DAYS = (1, 7, 30)
_FILTERS = ("mine", "state", "flavor", "kind", "days", "owner", "label", "queue", "team", "q")
Chip = dict[str, object]


def chips_of(request: Request, page_name: str) -> list[Chip]:
    """Return the chips of a list."""
    chips = [_mine(request), _states(request), _flavors(request), _days(request)]
    if page_name == "list":
        chips.append(_kinds(request))
    if len(request.teams) > 1 or request.user.is_platform_admin:
        chips.append(_teams(request))
    return chips + [_other(request, name) for name in ("label", "owner", "queue") if request.GET.get(name)]


def is_filtered(request: Request) -> bool:
    """Whether something other than the team narrows the list."""
    return any(request.GET.get(name) for name in _FILTERS)


def clear_url(_request: Request, page_name: str) -> str:
    """Return the address of the whole list."""
    return reverse(f"jobs:{page_name}")


def _mine(request: Request) -> Chip:
    is_on = bool(request.GET.get("mine"))
    return {"label": _("Mine"), "url": _with(request, "mine", "" if is_on else "1"), "is_active": is_on}


def _states(request: Request) -> Chip:
    names = {"": _("any"), "live": _("live"), "over": _("over")}
    names |= {value: str(label).lower() for value, label in Job.State.choices}
    return _menu(request, "state", _("State: %(value)s"), names)


def _flavors(request: Request) -> Chip:
    names = {"": _("any")} | {name: name for name in flavor_names()}
    return _menu(request, "flavor", _("Flavor: %(value)s"), names)


def _days(request: Request) -> Chip:
    names = {"": _("any time")} | {str(days): _("last %(days)d days") % {"days": days} for days in DAYS}
    names["1"] = _("last day")
    return _menu(request, "days", "%(value)s", names)


def _kinds(request: Request) -> Chip:
    names = {"": _("any"), "training": _("training"), "inference": _("services")}
    return _menu(request, "kind", _("Kind: %(value)s"), names)


def _teams(request: Request) -> Chip:
    own = request.team.name if request.team else _("all")
    names = {"": own} | {team.slug: team.name for team in request.teams if team != request.team}
    return _menu(request, "team", _("Team: %(value)s"), names | {ALL_TEAMS: _("all")})


def _other(request: Request, name: str) -> Chip:
    return {"label": f"{name}: {request.GET[name]}", "url": _with(request, name, ""), "is_active": True}


def _menu(request: Request, name: str, title: str, names: dict[str, str]) -> Chip:
    current = request.GET.get(name, "")
    options = [
        {"label": label, "url": _with(request, name, value), "is_active": value == current}
        for value, label in names.items()
    ]
    label = title % {"value": names.get(current, current)}
    return {"label": label[:1].upper() + label[1:], "options": options, "is_active": bool(current)}


def _with(request: Request, name: str, value: str) -> str:
    query = request.GET.copy()
    for gone in (name, "cursor"):
        query.pop(gone, None)
    if value:
        query[name] = value
    return f"?{query.urlencode()}"
