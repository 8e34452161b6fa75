"""The portal's addresses, with stand-ins for parts that the frame of a page links to and that are not wired yet."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLResolver, include, path

from portal.urls import urlpatterns as portal_patterns

FRAME = {
    "clusters": {"fleet": "fleet/", "list": "clusters/", "node": "clusters/<str:cluster>/nodes/<str:node>/"},
}


def stand_in(_request: HttpRequest, **_parts: str) -> HttpResponse:
    return HttpResponse("a page")


stand_in.is_stand_in = True  # type: ignore[attr-defined]  # the matrix leaves it out

_wired = {part.namespace for part in portal_patterns if isinstance(part, URLResolver)}
urlpatterns: list[Any] = [*portal_patterns]
for _app, _names in FRAME.items():
    if _app not in _wired:
        _patterns = [path(f"stand-in/{_route}", stand_in, name=_name) for _name, _route in _names.items()]
        urlpatterns.append(path("", include((_patterns, _app))))
