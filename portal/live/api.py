"""The log of a rank: text for people and programs alike, whole or as it is written."""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.views import APIView

from clusters.k8s.connection import Connection
from jobs.selectors.jobs import jobs_visible_to
from jobs.selectors.logs import log_source
from portal.core.connections import give_back
from portal.core.errors import BadQueryError
from portal.core.rest.request import ApiRequest
from portal.identity.models import ApiToken, User
from portal.identity.selectors import live_tokens
from portal.live.logs import LONGEST_TAIL, LogTarget, follow_log, read_log

DEFAULT_TAIL = 500
MOST_RANK = 99_999
PLAIN = "text/plain; charset=utf-8"
_whole = {"type": "integer", "minimum": 0}


class LogView(APIView):
    """Reads what the pod of a rank has written, with the portal's own right on the cluster."""

    @extend_schema(
        parameters=[
            OpenApiParameter("rank", {**_whole, "maximum": MOST_RANK, "default": 0}),
            OpenApiParameter("tail", {**_whole, "maximum": LONGEST_TAIL, "default": DEFAULT_TAIL}),
            OpenApiParameter("follow", OpenApiTypes.BOOL),
        ],
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def get(self, request: ApiRequest, uid: str) -> HttpResponseBase:
        """Show the last `tail` lines of a rank's log; `follow=true` goes on while they are written."""
        job = get_object_or_404(jobs_visible_to(request.user), uid=uid)
        rank, tail = _number(request, "rank", 0, MOST_RANK), _number(request, "tail", DEFAULT_TAIL, LONGEST_TAIL)
        source = log_source(job, rank)
        target = LogTarget(Connection.of(source.cluster), source.namespace, source.pod, source.container)
        # No connection to the database waits for a cluster.
        give_back()
        if request.query_params.get("follow") not in ("1", "true"):
            return _unbuffered(HttpResponse(read_log(target, tail), content_type=PLAIN))
        token = request.auth.pk if isinstance(request.auth, ApiToken) else None

        async def may_read() -> bool:
            return await sync_to_async(_may_read)(request.user.pk, token, uid)

        lines = follow_log(target, tail, may_read=may_read)
        return _unbuffered(StreamingHttpResponse(lines, content_type=PLAIN))


def _may_read(user_id: int, token: Any, uid: str) -> bool:
    """Ask again whether the reader may see the job: membership, account or token may have ended meanwhile."""
    try:
        user = User.objects.filter(pk=user_id, is_active=True).first()
        has_token = token is None or bool(user and live_tokens(user).filter(pk=token).exists())
        return bool(user and has_token and jobs_visible_to(user).filter(uid=uid).exists())
    finally:
        give_back()


def _number(request: ApiRequest, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) <= 6 and int(text) <= most):
        message = _("A whole number from 0 to %(most)d.") % {"most": most}
        raise BadQueryError(message, code="out_of_range", field=name, numbers={"most": most})
    return int(text)


def _unbuffered(response: HttpResponseBase) -> HttpResponseBase:
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    response["X-Content-Type-Options"] = "nosniff"
    return response
