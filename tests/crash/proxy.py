"""A proxy before an API server that holds one chosen request, so that a process can be killed right there.

    with running_proxy("http://127.0.0.1:6443") as proxy:
        held = proxy.hold("POST", r"/jobs$", at=Moment.ARRIVAL)
        held.wait()                    # the request is here, the server has not seen it
        os.kill(worker, SIGKILL)
        held.lose()                    # it never arrives; or held.deliver(): it arrives after the death of its sender

Everything else passes, watches included. The proxy speaks plain HTTP to the portal and whatever the server speaks.
"""

import asyncio
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

_HOPS = frozenset({"connection", "keep-alive", "transfer-encoding", "host", "content-length", "content-encoding"})
_PATIENCE_S = 60.0
_LOOK_S = 0.05
# As a real API server says it.
_UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


class Moment(Enum):
    """Where a request is held."""

    ARRIVAL = "arrival"  # before the server sees it
    REPLY = "reply"  # the server has done it; its answer is held


class Weather(Enum):
    """How every request fares that is not held."""

    FAIR = "fair"
    OUTAGE = "outage"  # connections are cut, streams too
    SILENCE = "silence"  # nothing is answered
    STRANGER = "stranger"  # the sender's token is not known any more


# Told of each request as it arrives, while its connection stands: the sender's port, method, path with query.
Observer = Callable[[int, str, str], None]


@dataclass
class Held:
    """One request that is to be held, and what becomes of it."""

    method: str
    path: re.Pattern[str]
    at: Moment
    skip: int
    _caught: threading.Event = field(default_factory=threading.Event)
    _decided: threading.Event = field(default_factory=threading.Event)
    _is_lost: bool = False

    def wait(self, timeout_s: float = _PATIENCE_S) -> None:
        """Until the request is held."""
        if not self._caught.wait(timeout_s):
            raise AssertionError(f"no {self.method} {self.path.pattern} within {timeout_s:.0f} s")

    def deliver(self) -> None:
        """Let it go on, whether or not its sender still lives."""
        self._decided.set()

    def lose(self) -> None:
        """Cut the connection: a request that was held on arrival never happened."""
        self._is_lost = True
        self._decided.set()

    def takes(self, method: str, path: str) -> bool:
        """Whether this is the request to hold; counts those that are let through first."""
        if self._caught.is_set() or method != self.method or not self.path.search(path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self._caught.set()
        return True

    async def is_lost(self) -> bool:
        """Wait for the decision."""
        await asyncio.to_thread(self._decided.wait)
        return self._is_lost


class HoldingProxy:
    """Use `running_proxy`."""

    def __init__(self, upstream: str, ca: str = "") -> None:
        self._upstream = upstream
        self._context = ssl.create_default_context(cadata=ca) if ca else None
        self._held: Held | None = None
        self._weather = Weather.FAIR
        self.observe: Observer | None = None
        self._open: dict[int, web.Request] = {}  # by identity: requests cannot be hashed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.url = ""

    def hold(self, method: str, path: str, *, at: Moment, skip: int = 0) -> Held:
        """Hold the next request whose path and query match, after `skip` others that do; forget the one before."""
        if self._held:
            self._held.lose()
        self._held = Held(method, re.compile(path), at, skip)
        return self._held

    def turn(self, weather: Weather) -> None:
        """Change how requests fare from now on. What ends requests ends open streams as well."""
        self._weather = weather
        if weather in (Weather.OUTAGE, Weather.STRANGER):
            self.break_streams()

    def break_streams(self) -> None:
        """Cut everything that is on its way, watches above all."""
        self._loop.call_soon_threadsafe(self._cut_all)

    def start(self) -> None:
        """Listen on a free port of the loopback interface."""
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)

    def stop(self) -> None:
        """Cut everything."""
        if self._held:
            self._held.lose()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self) -> str:
        connector = TCPConnector(limit=0, ssl=self._context if self._context else True)
        self._session = ClientSession(connector=connector, timeout=ClientTimeout(total=None), auto_decompress=False)
        application = web.Application(client_max_size=8 * 2**20)
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _close(self) -> None:
        self._weather = Weather.OUTAGE
        self._cut_all()
        await self._session.close()
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _cut_all(self) -> None:
        for request in self._open.values():
            _cut(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.observe and request.transport is not None:
            self.observe(int(request.transport.get_extra_info("peername")[1]), request.method, request.path_qs)
        self._open[id(request)] = request
        try:
            while self._weather is Weather.SILENCE:
                await asyncio.sleep(_LOOK_S)
            if self._weather is Weather.STRANGER:
                return web.json_response(_UNAUTHORIZED, status=401)
            return _cut(request) if self._weather is Weather.OUTAGE else await self._forward(request)
        except ClientError:  # the server went, or was cut
            return _cut(request)
        finally:
            del self._open[id(request)]

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        held = self._held if self._held and self._held.takes(request.method, request.path_qs) else None
        if held and held.at is Moment.ARRIVAL and await held.is_lost():
            return _cut(request)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOPS}
        url = URL(self._upstream + request.path_qs, encoded=True)
        async with self._session.request(request.method, url, data=body or None, headers=headers) as upstream:
            if held and held.at is Moment.REPLY and await held.is_lost():
                return _cut(request)
            return await _pass_on(request, upstream)


async def _pass_on(request: web.Request, upstream: ClientResponse) -> web.StreamResponse:
    kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _HOPS}
    answer = web.StreamResponse(status=upstream.status, headers=kept)
    try:
        await answer.prepare(request)
        async for chunk in upstream.content.iter_any():
            await answer.write(chunk)
        await answer.write_eof()
    except ConnectionError:  # its sender is dead
        return _cut(request)
    return answer


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


@contextmanager
def running_proxy(upstream: str, ca: str = "") -> Iterator[HoldingProxy]:
    """A proxy that lives as long as the block."""
    proxy = HoldingProxy(upstream, ca)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
