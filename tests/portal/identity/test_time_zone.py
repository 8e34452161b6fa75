"""Times are shown where the person is."""

from collections.abc import Callable

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from portal.identity.middleware import TimeZoneMiddleware
from portal.identity.models import User

pytestmark = pytest.mark.django_db


def zone_seen_by(user: User) -> str:
    seen: list[str] = []

    def view(_request: HttpRequest) -> HttpResponse:
        seen.append(timezone.get_current_timezone_name())
        return HttpResponse()

    request = RequestFactory().get("/")
    request.user = user
    TimeZoneMiddleware(view)(request)
    return seen[0]


@pytest.mark.parametrize(("chosen", "seen"), [("Asia/Riyadh", "Asia/Riyadh"), ("Nowhere/Land", "UTC"), ("", "UTC")])
def test_a_page_uses_the_time_zone_of_its_reader(alice: User, chosen: str, seen: str) -> None:
    alice.time_zone = chosen

    assert zone_seen_by(alice) == seen


def test_the_zone_of_one_request_does_not_stay_for_the_next(alice: User, browser_of: Callable[[User], Client]) -> None:
    alice.time_zone = "Asia/Riyadh"
    alice.save(update_fields=["time_zone"])

    browser_of(alice).get("/healthz")

    assert timezone.get_current_timezone_name() == "UTC"
