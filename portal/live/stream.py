"""Server-sent events: one stream a page, for all its topics."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib.auth import aget_user
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from portal.core.connections import give_back
from portal.identity.models import User
from portal.live.hub import Notice, hub
from portal.live.topics import allowed_topics

# A tick keeps proxies from closing the stream, tells the page that we live, and us that the reader has gone.
KEEP_ALIVE_S = 15.0
# One look a second at most, however much happens.
PAUSE_S = 1.0
# Membership may have ended meanwhile: look again this often.
RECHECK_S = 30.0


@require_GET
async def stream(request: HttpRequest) -> HttpResponseBase:
    """Stream notices of the topics in `?topic=...&topic=...`."""
    user = await aget_user(request)
    asked = request.GET.getlist("topic")
    if not isinstance(user, User) or (topics := await _allowed(user, asked)) is None:
        raise Http404
    # Without this the stream would keep its database connection until the page is closed.
    await sync_to_async(give_back)()
    response = StreamingHttpResponse(_events(user, topics), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _events(user: User, topics: frozenset[str]) -> AsyncIterator[bytes]:
    checked_at = time.monotonic()
    async with hub.subscribe(topics) as subscription:
        yield b"retry: 2000\nevent: tick\ndata: {}\n\n"
        while True:
            notices = await subscription.take(KEEP_ALIVE_S)
            if time.monotonic() - checked_at > RECHECK_S:
                checked_at = time.monotonic()
                if await _allowed(user, topics) is None:
                    yield b"event: gone\ndata: {}\n\n"
                    return
            yield b"".join(_line(notice) for notice in notices) or b"event: tick\ndata: {}\n\n"
            await asyncio.sleep(PAUSE_S if notices else 0)


async def _allowed(user: User, topics: list[str] | frozenset[str]) -> frozenset[str] | None:
    allowed = await sync_to_async(_read_again)(user, topics)
    await sync_to_async(give_back)()
    return allowed


def _read_again(user: User, topics: list[str] | frozenset[str]) -> frozenset[str] | None:
    current = User.objects.filter(pk=user.pk, is_active=True).first()
    return allowed_topics(current, topics) if current else None


def _line(notice: Notice) -> bytes:
    data = json.dumps({"topic": notice.topic, "id": notice.id, "version": notice.version}, separators=(",", ":"))
    return f"data: {data}\n\n".encode()
