"""The viewsets of this app."""

from rest_framework.viewsets import ViewSetMixin

from jobs.api.incidents import IncidentViewSet
from jobs.api.jobs import JobViewSet
from jobs.api.preview import PreviewViewSet, TemplateViewSet

router_entries: list[tuple[str, type[ViewSetMixin], str]] = [
    ("jobs", JobViewSet, "jobs"),
    ("incidents", IncidentViewSet, "incidents"),
    ("preview", PreviewViewSet, "preview"),
    ("templates", TemplateViewSet, "templates"),
]
