"""The pages and the REST of this app, and blank pages for the names that the frame of every page links to."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path


def blank(_request: HttpRequest, **_parts: str) -> HttpResponse:
    return HttpResponse()


jobs = [path(f"{name}/", blank, name=name) for name in ("list", "services", "new_training", "new_service")]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("clusters.urls")),
    path("", include("quotas.urls")),
    path("", include("portal.identity.urls")),
    path("home/", blank, name="home"),
    path("live/", blank, name="live"),
    path("jobs/", include(([*jobs, path("<slug:uid>/", blank, name="detail")], "jobs"))),
]
