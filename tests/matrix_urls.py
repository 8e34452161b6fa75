"""The portal's addresses, with stand-ins for parts that the frame of a page links to and that are not wired yet."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, include, path

from portal.urls import urlpatterns as portal_patterns

FRAME = {
    "jobs": ("list", "services", "new_training", "new_service"),
    "quotas": ("queues", "console"),
    "clusters": ("fleet", "list"),
}


def stand_in(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("a page")


stand_in.is_stand_in = True  # type: ignore[attr-defined]  # the matrix leaves it out

_wired = {part.namespace for part in portal_patterns if isinstance(part, URLResolver)}
urlpatterns: list[Any] = [*portal_patterns, path("stand-in/home/", stand_in, name="home")]
for _app, _names in FRAME.items():
    if _app not in _wired:
        _patterns = [path(f"stand-in/{_app}/{_name}/", stand_in, name=_name) for _name in _names]
        urlpatterns.append(path("", include((_patterns, _app))))
