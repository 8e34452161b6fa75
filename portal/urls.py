"""Every address of the portal."""

from django.urls import URLPattern, URLResolver, include, path

from portal.health.views import healthz, readyz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("api/", include("portal.api.urls")),
    path("", include("portal.identity.urls")),
]
