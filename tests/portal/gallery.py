"""A page with every component, and addresses under the names that the frame links to. For tests only."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import engines
from django.urls import URLPattern, include, path
from django.utils.html import escape, format_html

FIGURE = {
    "data": [
        {"name": f"rank {rank}", "x": [f"2026-11-30T12:{minute:02d}:00Z" for minute in range(30)],
         "y": [None if 10 <= minute < 14 else 60 + 8 * rank + (minute * (3 + rank)) % 11 for minute in range(30)],
         "line": {"color": f"s{rank + 1}"}}
        for rank in range(4)
    ],
    "layout": {
        "yaxis": {"range": [0, 100]},
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 90, "y1": 90,
             "line": {"color": "target", "dash": "dash", "width": 1}}
        ],
    },
}  # fmt: skip


def _cells(kinds: str) -> list[dict[str, object]]:
    names = {".": "free", "!": "idle", "x": "fault", "/": "cordoned", ":": "foreign", "-": "unknown"}
    return [
        {"state": names[kind]} if kind in names else {"state": "busy", "util": 20 * int(kind) - 10} for kind in kinds
    ]


def _rack(name: str, *rows: str, free: int) -> dict[str, object]:
    nodes = [
        {"name": f"{name}n{at}", "url": f"/nodes/{name}n{at}/", "cells": _cells(row), "id": f"{name}n{at}", "v": 1}
        for at, row in enumerate(rows)
    ]  # fmt: skip
    return {"name": name, "free": free, "nodes": nodes}


BLOCKS = [
    {"name": "b1", "racks": [_rack("r1", "55335525", "55443322", free=0), _rack("r2", "..4x1153", "!!!!!!!!", free=2)]},
    {"name": "b2", "racks": [_rack("r3", "45555555", "////////", free=0), _rack("r4", "........", "::::----", free=8)]},
]
JOBS = [
    ("running", "llm-sft-b64-3", 4, 4, 4, "rack r2, 1 hop", 91, 7800),
    ("queued", "vit-large-ablate-with-a-long-name-somebody-chose-12", 4, 0, 0, "3 of 4 nodes free in r2", None, 1080),
    ("admitted", "tok-prep-1", 2, 2, 0, "pods gated, 2 of 2", None, 4),
    ("starting", "rlhf-reward-8", 2, 2, 0, "pulling image, 1 of 2 ready", None, 41),
    ("stopping", "sweep-lr-07-1", 1, 1, 1, "stops in 84 s for prod-eval, checkpoint 3 m old", 12, 21720),
    ("succeeded", "eval-nightly-40", 1, 1, 1, "exit 0", None, 720),
    ("failed", "llm-sft-b32-2", 64, 64, 64, "rank 2 out of GPU memory, exit 1", None, 6240),
    ("cancelled", "vit-large-old-1", 2, 0, 0, "cancelled by bob", None, 1980),
]  # fmt: skip
COLUMNS = ("state", "name", "workers", "held", "running", "why", "util", "age")
CONTEXT = {
    "figure": FIGURE,
    "blocks": BLOCKS,
    "facts": [
        {"label": "Asked for", "value": 32, "note": "GPUs, 4 x 8 H100"},
        {"label": "Queue", "value": "vision", "note": "40 of 64 used"},
        {"label": "Priority", "value": "research", "note": "can be preempted"},
        {"label": "Time limit", "value": "12 h"},
        {"label": "Cluster", "value": "sim-east"},
    ],
    "chips": [
        {"label": "Mine", "url": "?mine=1", "is_active": True},
        {"label": "State: live", "options": [{"label": "All", "url": "?"}, {"label": "Live", "url": "?s"}]},
        {"label": "Last 7 days", "url": "?days=7"},
    ],
    "tabs": [
        {"label": "Overview", "url": "?tab=o", "is_current": True},
        {"label": "Logs", "url": "?tab=l"},
        {"label": "Events", "url": "?tab=e", "count": 12},
    ],
    "pager": {"newer_url": "?after=1", "older_url": "?before=1"},
    "shares": [("neutral", 600), ("active", 360), ("hatch", 120)],
}  # fmt: skip


@dataclass
class Board:
    """What the page shows, changeable while it is open; the stream tells of each change."""

    jobs: list[dict[str, object]]
    version: int = 1
    is_streaming: bool = True

    def change(self, name: str, state: str) -> None:
        """Put a job in a state and say so."""
        for job in self.jobs:
            if job["name"] == name:
                job["state"] = state
        self.version += 1

    def add(self, name: str) -> None:
        """Put a new job on top and say so."""
        self.jobs.insert(0, dict(zip(COLUMNS, ("queued", name, 1, 0, 0, "new", None, 0), strict=True)))
        self.version += 1


board = Board([])


def reset() -> Board:
    """Start again with the first rows."""
    board.jobs = [dict(zip(COLUMNS, job, strict=True)) for job in JOBS]
    board.version, board.is_streaming = 1, True
    return board


def gallery(request: HttpRequest) -> HttpResponse:
    """Show every component once."""
    live = {"jobs": board.jobs, "version": board.version, "live_url": request.GET.get("live", "")}
    return render(request, "gallery.html", CONTEXT | live)


async def stream(request: HttpRequest) -> HttpResponseBase:
    """Tell of changes as the portal does: a topic, an id and a version, for the page to ask again."""
    if not board.is_streaming:
        return HttpResponse(status=503)
    return StreamingHttpResponse(_changes(), content_type="text/event-stream")


async def _changes() -> AsyncIterator[str]:
    seen = board.version
    yield "event: tick\ndata: {}\n\n"
    while board.is_streaming:
        await asyncio.sleep(0.02)
        if board.version != seen:
            seen = board.version
            yield f"data: {json.dumps({'topic': 'team:1', 'id': 'x', 'version': seen})}\n\n"


def preview(request: HttpRequest) -> HttpResponse:
    """Answer with what was typed."""
    return HttpResponse(escape(f"{request.POST.get('name')} with {' '.join(request.POST.getlist('args'))}"))


def convert(request: HttpRequest) -> HttpResponse:
    """Turn the form into text and back; text with a tab in it is refused."""
    text = request.POST.get("yaml") or f"name: {request.POST.get('spec_name')}"
    if "\t" in text:
        return HttpResponse("line 1: tab", status=422)
    if request.POST["to"] == "yaml":
        return HttpResponse(format_html('<textarea class="form-control m-code" name="yaml">{}</textarea>', text))
    return HttpResponse(format_html('<input name="spec_name" value="{}">', text.removeprefix("name: ")))


def nothing(request: HttpRequest, **parts: str) -> HttpResponse:
    """Answer with an empty page in the frame."""
    page = engines["django"].from_string("{% extends 'base.html' %}{% block heading %}<h1>A page</h1>{% endblock %}")
    return HttpResponse(page.render({}, request))


def broken(request: HttpRequest) -> HttpResponse:
    """Fail."""
    raise RuntimeError("on purpose")


def _pages(names: str) -> list[URLPattern]:
    return [path(f"{name}/", nothing, name=name) for name in names.split()]


_people = _pages("teams tokens sign_in sign_out profile password switch_team audit")
_jobs = _pages("list services new_training new_service")
_clusters = _pages("list fleet")
_quotas = _pages("queues console")
urlpatterns = [
    path("", gallery, name="home"),
    path("live/", stream),
    path("preview/", preview),
    path("convert/", convert),
    path("broken/", broken),
    path("people/", include((_people, "identity"))),
    path("jobs/", include((_jobs, "jobs"))),
    path("clusters/", include((_clusters, "clusters"))),
    path("quotas/", include((_quotas, "quotas"))),
]
