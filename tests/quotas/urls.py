"""The pages and the REST of this app, and blank pages for the names that the frame of every page links to."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path
from rest_framework.routers import SimpleRouter

from quotas.api import router_entries

router = SimpleRouter()
for prefix, viewset, basename in router_entries:
    router.register(prefix, viewset, basename=basename)


def blank(_request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def names(app: str, *wanted: str) -> URLResolver:
    return path(f"{app}/", include(([path(f"{name}/", blank, name=name) for name in wanted], app)))


urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("quotas.urls")),
    path("", include("portal.identity.urls")),
    path("api/v1/", include(router.urls)),
    path("home/", blank, name="home"),
    names("jobs", "list", "services", "new_training", "new_service"),
    names("clusters", "list", "fleet"),
]
