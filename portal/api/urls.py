"""The REST interface: one router over the apps' viewsets, the schema, and its reader."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from clusters.api import router_entries as clusters_entries
from jobs.api.router import router_entries as jobs_entries
from portal.api.capacity import router_entries as capacity_entries
from portal.identity.api import router_entries as identity_entries
from quotas.api import router_entries as quotas_entries

router = SimpleRouter()
for prefix, viewset, basename in (
    *jobs_entries,
    *identity_entries,
    *quotas_entries,
    *clusters_entries,
    *capacity_entries,
):
    router.register(prefix, viewset, basename=basename)

app_name = "api"
urlpatterns = [
    path("v1/", include(router.urls)),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
]
