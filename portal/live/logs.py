"""The one place where a request talks to a cluster: the log of a pod, bounded in time and size.

It speaks plain HTTP with the cluster's own address, authority and token; the Kubernetes client never enters here.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from clusters.k8s import logs
from clusters.k8s.connection import AddressRefusedError, Connection, check_server
from portal.core.errors import DomainError

CONNECT_S = 2.0
READ_S = 5.0
# A followed log may be silent this long; then we look whether its reader may still see it.
SILENCE_S = 15.0
MOST_S = 900.0
MOST_BYTES = 8 * 2**20
LONGEST_TAIL = 10_000
RECHECK_S = 30.0


class LogError(DomainError):
    """The log cannot be had now."""

    code = "log_unavailable"
    status = 503
    default_message = gettext_lazy("The cluster does not answer; its logs cannot be read now.")


class LogGoneError(LogError):
    """The pod is gone, and its log with it."""

    code = "log_gone"
    status = 404
    default_message = gettext_lazy("The pod is gone, and its log with it.")


class LogNotReadyError(LogError):
    """The container has not started."""

    code = "log_not_ready"
    status = 409
    default_message = gettext_lazy("The container has not started yet.")


@dataclass(frozen=True, slots=True)
class LogTarget:
    """One container of one pod, and the way to its cluster."""

    connection: Connection
    namespace: str
    pod: str
    container: str


def read_log(target: LogTarget, tail: int) -> str:
    """Return the last lines of a log, at most MOST_BYTES. Raise LogError."""
    try:
        with _client(target) as client, client.stream("GET", _path(target), params=_query(target, tail)) as answer:
            if answer.status_code != httpx.codes.OK:
                raise error_of(answer.status_code)
            return "".join(f"{line}\n" for line in logs.lines(_bounded(answer.iter_bytes())))
    except (httpx.HTTPError, AddressRefusedError, ssl.SSLError) as error:
        raise LogError from error


async def follow_log(target: LogTarget, tail: int, *, may_read: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """Yield the log as it is written, in UTF-8, until it ends, its reader may not see it any more, or the bounds.

    What goes wrong on the way is the last line: the answer has begun by then.
    """
    try:
        async for chunk in _followed(target, tail, may_read):
            yield chunk
    except LogError as error:
        yield _note(error.message)
    except (httpx.HTTPError, AddressRefusedError, ssl.SSLError):
        yield _note(str(LogError.default_message))


def error_of(status: int) -> LogError:
    """Return the error for an answer of the cluster that is no log."""
    if status == httpx.codes.NOT_FOUND:
        return LogGoneError()
    if status == httpx.codes.BAD_REQUEST:
        return LogNotReadyError()
    return LogError()


async def _followed(target: LogTarget, tail: int, may_read: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    ends_at, checked_at, sent = time.monotonic() + MOST_S, time.monotonic(), 0
    async with (
        _async_client(target) as client,
        client.stream("GET", _path(target), params=_query(target, tail) | {"follow": "true"}) as answer,
    ):
        if answer.status_code != httpx.codes.OK:
            raise error_of(answer.status_code)
        lines = _Lines()
        async for chunk in _with_silence(answer.aiter_bytes()):
            text = lines.feed(chunk)
            sent += len(text)
            yield text
            if time.monotonic() - checked_at > RECHECK_S:
                checked_at = time.monotonic()
                if not await may_read():
                    return
            if time.monotonic() > ends_at or sent > MOST_BYTES:
                yield _note(_("It goes on; open it again to read further."))
                return
        yield lines.end()


async def _with_silence(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield nothing (b"") now and then while the program is silent, so that the reader's leaving is noticed."""
    waiting: asyncio.Task[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(chunks))
            done, _pending = await asyncio.wait({waiting}, timeout=SILENCE_S)
            if not done:
                yield b""
                continue
            try:
                chunk, waiting = waiting.result(), None
            except StopAsyncIteration:
                return
            yield chunk
    finally:
        if waiting is not None:
            waiting.cancel()


class _Lines:
    """Whole lines out of chunks, cleaned as `clusters.k8s.logs` does it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines that are complete; the rest waits."""
        whole, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
        if not newline and len(self._rest) > logs.MAX_LINE:
            whole, self._rest = self._rest, b""
        return _cleaned([whole + newline])

    def end(self) -> bytes:
        """Return what is left."""
        return _cleaned([self._rest])


def _cleaned(chunks: Iterable[bytes]) -> bytes:
    return "".join(f"{line}\n" for line in logs.lines(chunks)).encode()


def _bounded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    left = MOST_BYTES
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _note(text: str) -> bytes:
    return f"[muster] {text}\n".encode()


def _client(target: LogTarget) -> httpx.Client:
    check_server(target.connection.server)
    return httpx.Client(timeout=httpx.Timeout(READ_S, connect=CONNECT_S), **_options(target))


def _async_client(target: LogTarget) -> httpx.AsyncClient:
    check_server(target.connection.server)
    return httpx.AsyncClient(timeout=httpx.Timeout(None, connect=CONNECT_S), **_options(target))


def _options(target: LogTarget) -> dict[str, Any]:
    access = target.connection
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    return {
        "base_url": access.server,
        "headers": headers,
        "verify": ssl.create_default_context(cadata=access.ca_data or None),
        # No proxy of the environment, and no redirect that would take the token elsewhere.
        "trust_env": False,
        "follow_redirects": False,
    }


def _path(target: LogTarget) -> str:
    return f"/api/v1/namespaces/{quote(target.namespace, safe='')}/pods/{quote(target.pod, safe='')}/log"


def _query(target: LogTarget, tail: int) -> dict[str, str]:
    return {"container": target.container, "tailLines": str(tail)}
