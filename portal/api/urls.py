"""The REST interface: one router over the apps' viewsets, the schema, and its reader."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView
from rest_framework.routers import SimpleRouter

from jobs.api.router import router_entries as jobs_entries
from portal.identity.api import router_entries as identity_entries

router = SimpleRouter()
for prefix, viewset, basename in (*jobs_entries, *identity_entries):
    router.register(prefix, viewset, basename=basename)

app_name = "api"
urlpatterns = [
    path("v1/", include(router.urls)),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="api:schema"), name="docs"),
]
