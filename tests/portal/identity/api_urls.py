"""The addresses of people, with their REST."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from portal.identity.api import router_entries
from tests.portal.urls import urlpatterns as pages

router = SimpleRouter()
for prefix, viewset, basename in router_entries:
    router.register(prefix, viewset, basename)

urlpatterns = [*pages, path("api/v1/", include(router.urls))]
