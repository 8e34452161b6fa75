"""Probes of an orchestrator. They are open to everyone and tell nothing but names of parts."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal.health import checks


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Say that the process answers."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Say whether the whole portal can work: 200, or 503 with what is missing."""
    failures = checks.failures()
    return JsonResponse(
        {"status": "unready" if failures else "ok", "failures": failures}, status=503 if failures else 200
    )
