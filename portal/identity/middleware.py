"""Which teams the person of a request belongs to, and which of them is the chosen one."""

import re
from collections.abc import Awaitable, Callable
from functools import cache, cached_property
from typing import cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.decorators import sync_and_async_middleware
from django_structlog.middlewares import RequestMiddleware

from portal.identity.models import Membership, Team

# The last part of these addresses lets its bearer join a team or set a password.
SECRET_IN_PATH = re.compile(r"(?<=/people/invitations/)[^/?]+|(?<=/people/password/reset/)[^/?]+/[^/?]+")
MASK = "***"
CHOSEN_TEAM = "team_id"  # the session's key

Handler = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


class RequestLogMiddleware(RequestMiddleware):
    """The log of requests, without the secrets of links that people get by mail."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        """Return method and address as they may be written down."""
        return f"{request.method} {SECRET_IN_PATH.sub(MASK, request.get_full_path())}"


@sync_and_async_middleware
def CurrentTeamMiddleware(get_response: Handler) -> Handler:  # noqa: N802 -- named in settings
    """Give every request `team`, `teams` and `roles`. Nothing is read until one of them is asked for."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            _give_teams(request)
            return await cast("Awaitable[HttpResponseBase]", get_response(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        _give_teams(request)
        return cast("HttpResponseBase", get_response(request))

    return answer


class _Teams(HttpRequest):
    """Read late, because an API token names its person only inside the view.

    Properties rather than lazy objects: a lazy object around None is not None.
    """

    @cached_property
    def _memberships(self) -> list[Membership]:
        if not self.user.is_authenticated:
            return []
        rows = Membership.objects.filter(user_id=self.user.pk).select_related("team")
        return list(rows.order_by("team__name", "team_id"))

    @cached_property
    def teams(self) -> list[Team]:
        return [membership.team for membership in self._memberships]

    @cached_property
    def roles(self) -> dict[int, str]:
        return {membership.team_id: membership.role for membership in self._memberships}

    @cached_property
    def team(self) -> Team | None:
        chosen = self.session.get(CHOSEN_TEAM)
        first = next(iter(self.teams), None)
        return next((team for team in self.teams if team.pk == chosen), first)


def _give_teams(request: HttpRequest) -> None:
    plain: type = type(request)
    request.__class__ = _with_teams(plain)


@cache
def _with_teams(request_class: type) -> type[HttpRequest]:
    return type(request_class.__name__, (_Teams, request_class), {})


def TimeZoneMiddleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Handler:  # noqa: N802 -- as above
    """Show times in the person's own zone. A zone that this machine no longer knows counts as UTC."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return get_response(request)
        try:
            zone = ZoneInfo(request.user.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            zone = ZoneInfo("UTC")
        with timezone.override(zone):
            return get_response(request)

    return answer
