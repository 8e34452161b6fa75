"""Every address of the portal."""

from django.urls import URLPattern, URLResolver, include, path

from portal.health.views import healthz, readyz
from portal.live.api import LogView
from portal.live.stream import stream
from portal.web.home import home

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("", home, name="home"),
    path("live/", stream, name="live"),
    path("api/v1/jobs/<slug:uid>/logs/", LogView.as_view(), name="job_logs"),
    path("api/", include("portal.api.urls")),
    path("", include("portal.identity.urls")),
    path("", include("quotas.urls")),
    path("", include("jobs.urls")),
    path("", include("clusters.urls")),
]
