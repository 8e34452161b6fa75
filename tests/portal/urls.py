"""The addresses of people with stand-ins for those that the frame of a page links to."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def blank(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("a page")


def _stand_ins(app: str, *names: str) -> Any:
    return include(([path(f"{app}/{name}/", blank, name=name) for name in names], app))


urlpatterns = [
    path("", blank, name="home"),
    path("", include("portal.identity.urls")),
    path("", _stand_ins("jobs", "list", "services", "new_training", "new_service")),
    path("", _stand_ins("quotas", "queues", "console")),
    path("", _stand_ins("clusters", "fleet", "list")),
]
