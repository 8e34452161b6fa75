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

handler400 = "portal.api.errors.bad_request"
handler403 = "portal.api.errors.permission_denied"
handler404 = "portal.api.errors.not_found"
handler500 = "portal.api.errors.server_error"
