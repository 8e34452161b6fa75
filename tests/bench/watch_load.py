"""Fifty open dashboards: what they add at the API server of a cluster.

A portal of real processes knows a simulated cluster by the address of a proxy, which asks the system who sent each
request. Runs come and go all the while. Fifty signed-in readers each hold a page's stream open and read the page again
when it is told of news, as browsers do. A request counts as extra when the web process sent it, or when more watches
were open than before the readers came.
"""

import argparse
import asyncio
import contextlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from itertools import cycle, islice
from typing import Any

import psutil  # type: ignore[import-untyped]
from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar

from clusters.simulated.fleet import uniform, with_teams
from tests.clusters_running import running_cluster
from tests.crash.site import Door, Site, running_site

DASHBOARDS = 50
WINDOW_S = 30
NODES = 8
READ_AGAIN_S = 2.0  # two cores serve fifty readers; browsers would ask again after one second
BETWEEN_RUNS_S = 2.0
REOPEN_S = 2.0  # as our streams tell browsers
NODE_PAGES = tuple(f"/clusters/held/nodes/node-{number}/" for number in range(4))
PAGES = ("/", "/jobs/", "/clusters/", "/clusters/held/", *NODE_PAGES)
USER, PASSWORD = "alice", "muster-demo-2026"
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_STREAM = re.compile(r'data-live="([^"]+)"')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--dashboards", type=int, default=DASHBOARDS)
    parser.add_argument("--window", type=int, default=WINDOW_S, help="seconds without and with the dashboards")


@dataclass
class Traffic:
    """Requests at the API server by the process that sent them, and the watches that were opened."""

    owners: dict[int, str]
    requests: Counter[str] = field(default_factory=Counter)
    watches: Counter[str] = field(default_factory=Counter)
    _names: dict[int, str] = field(default_factory=dict)

    def note(self, port: int, _method: str, path: str) -> None:
        """Count one request."""
        if port not in self._names:
            self._names[port] = self._owner(port)
        self.requests[self._names[port]] += 1
        if "watch=true" in path:
            self.watches[path.partition("?")[0]] += 1

    def _owner(self, port: int) -> str:
        for pid, name in self.owners.items():
            try:
                mine = psutil.Process(pid).net_connections("tcp")
            except psutil.NoSuchProcess:
                continue
            if any(connection.laddr and connection.laddr.port == port for connection in mine):
                return name
        return "unknown"


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Count without and with the dashboards."""
    fleet = with_teams({**uniform(nodes=NODES, gpus=8, per_rack=4), "name": "held"})
    with running_cluster(fleet, clock=10) as cluster:
        door = Door(server=cluster.url, token=cluster.token, levels=(("rack", "topology.muster.internal/rack"),))
        with running_site(door, NODES) as site:
            quiet, _none = asyncio.run(_window(site, 0, args.window))
            loaded, audience = asyncio.run(_window(site, args.dashboards, args.window))
            site.clear()
    if audience.pages_read < args.dashboards:
        raise AssertionError(f"{args.dashboards} dashboards read {audience.pages_read} pages: the load was none")
    if loaded.requests["unknown"] or not loaded.requests["watch"]:
        raise AssertionError(f"it is not known who sent what: {loaded.requests}")
    return {
        "extra_requests": loaded.requests["web"],
        "requests_quiet": dict(quiet.requests),
        "requests_loaded": dict(loaded.requests),
        "pages_read": audience.pages_read,
        "streams_ended": audience.streams_ended,
        "facts": {"dashboards": args.dashboards, "window_s": args.window, "nodes": NODES},
    }


async def _window(site: Site, dashboards: int, seconds: int) -> "tuple[Traffic, Audience]":
    """Return who asked the cluster within some seconds, and who read pages meanwhile."""
    traffic = Traffic(_processes(site))
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), timeout=ClientTimeout(total=None)) as session:
        audience = Audience(session, site.portal.url)
        if dashboards:
            await audience.sign_in()
        readers = [asyncio.create_task(audience.read(page)) for page in islice(cycle(PAGES), dashboards)]
        site.proxy.observe = traffic.note
        await _busy(site, seconds)
        site.proxy.observe = None
        for reader in readers:
            reader.cancel()
        ended = await asyncio.gather(*readers, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error
    return traffic, audience


def _processes(site: Site) -> dict[int, str]:
    """Return the portal's processes and their children by process id."""
    return {
        each.pid: name
        for name, process in site.portal.processes.items()
        for each in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True))
    }


async def _busy(site: Site, seconds: int) -> None:
    """Let runs come and go, so that there is news."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        body = {"name": "busy", "kind": "training", "image": "example.org/train:1", "gpus_per_worker": 2}
        await asyncio.to_thread(site.portal.api.submit, {**body, "env": {"SIM_RUN_S": "30"}})
        await asyncio.sleep(BETWEEN_RUNS_S)


class Audience:
    """Readers with one session, as tabs of a browser."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self.pages_read = 0
        self.streams_ended = 0
        self._session = session
        self._url = url

    async def sign_in(self) -> None:
        """Sign in as a person does."""
        url = f"{self._url}/sign-in/"
        token = _TOKEN.search(await self._text(url))
        form = {"username": USER, "password": PASSWORD, "csrfmiddlewaretoken": token[1] if token else ""}
        async with self._session.post(url, data=form, headers={"Referer": url}) as answer:
            if "/sign-in/" in str(answer.url):
                raise AssertionError("nobody could sign in")

    async def read(self, page: str) -> None:
        """Hold a page's stream open, and read the page again on news; a stream that ends is opened anew."""
        while True:
            # aiohttp tells of a connection that went under a reader by RuntimeError.
            with contextlib.suppress(ClientError, RuntimeError):
                await self._follow(page)
            self.streams_ended += 1
            await asyncio.sleep(REOPEN_S)

    async def _follow(self, page: str) -> None:
        address = self._url + page
        stream = _STREAM.search(await self._text(address))
        if stream is None:
            raise AssertionError(f"{page} has no stream")
        async with self._session.get(self._url + unescape(stream[1])) as answer:
            async for line in answer.content:
                if line.startswith(b'data: {"topic"'):
                    await self._text(address)
                    await asyncio.sleep(READ_AGAIN_S)

    async def _text(self, address: str) -> str:
        async with self._session.get(address) as answer:
            text = await answer.text()
            if answer.status != 200:
                raise AssertionError(f"{address} answered {answer.status}")
        self.pages_read += 1
        return text
