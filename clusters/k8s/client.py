"""The official client's transport: connections, TLS and time-outs. Raw JSON only, no models, no retries."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlencode

from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.response import HTTPResponse

from clusters.k8s.connection import AddressRefusedError, Connection, check_server
from clusters.k8s.documents import WHOLE
from clusters.k8s.values import JsonObject, Refused, Unreachable, error_of

CONNECT_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 5.0
_CHUNK_BYTES = 65_536

Query = Mapping[str, str | int | bool]
Answer = TypeVar("Answer")


class ByteStream:
    """The body of an answer, chunk by chunk as it arrives. Any thread may close it; the reader then ends."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            while chunk := self._response.read1(_CHUNK_BYTES):
                yield chunk
        except ReadTimeoutError as error:
            raise Unreachable("the cluster went silent") from error
        except (HTTPError, OSError, ValueError) as error:
            # ValueError: the file below was closed while it was read.
            if not self._is_closed:
                raise Unreachable(f"the stream broke: {error}") from error
        finally:
            self._response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream; a read that waits in another thread returns."""
        self._is_closed = True
        with contextlib.suppress(OSError, ValueError):  # it may have ended already
            self._response.shutdown()


class Client:
    """HTTP to one API server. Thread-safe; connections are kept and used again."""

    def __init__(self, connection: Connection) -> None:
        try:
            check_server(connection.server)
        except AddressRefusedError as error:
            raise Refused(str(error)) from error
        configuration = Configuration(
            host=connection.server.rstrip("/"),
            ca_cert_data=connection.ca_data or None,
            # Not None: that would take a proxy from the environment.
            proxy="",
            no_proxy="",
            # Also keeps redirects from being followed with the token.
            retries=False,
            connection_pool_maxsize=16,
        )
        configuration.keep_alive = True
        self._host = configuration.host
        self._transport = RESTClientObject(configuration)
        self._headers = {"Accept": "application/json", "User-Agent": "muster"}
        if connection.token:
            self._headers["Authorization"] = f"Bearer {connection.token}"

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """Send one request and return the JSON answer. Raise a GatewayError for every other outcome."""
        return _decoded(WHOLE.object, self._answer(method, path, query, (body, content_type)))

    def read(self, path: str, decode: Callable[[bytes], Answer], *, query: Query) -> Answer:
        """Return what `decode` makes of what stands there; its ValueError tells that no API server wrote that."""
        return _decoded(decode, self._answer("GET", path, query, (None, "")))

    def date(self, path: str) -> str:
        """Return the time of day that the server puts on an answer, as it wrote it; empty when it wrote none."""
        response = self._send("GET", path, None, (None, ""), READ_TIMEOUT_S)
        data = self._read(response)
        if not 200 <= response.status < 300:
            raise error_of(response.status, _told(data))
        return str(response.headers.get("Date") or "")

    def stream(self, path: str, *, query: Query, read_timeout_s: float) -> ByteStream:
        """Open a long answer. Raise a GatewayError when it does not start with status 200 or 204."""
        response = self._send("GET", path, query, (None, ""), read_timeout_s)
        # 204: there is nothing yet, such as the log of a pod without a node.
        if response.status not in (200, 204):
            raise error_of(response.status, _told(self._read(response)))
        return ByteStream(response)

    def close(self) -> None:
        """Drop the kept connections."""
        self._transport.close()

    def _answer(self, method: str, path: str, query: Query | None, content: tuple[object, str]) -> bytes:
        response = self._send(method, path, query, content, READ_TIMEOUT_S)
        data = self._read(response)
        if not 200 <= response.status < 300:
            raise error_of(response.status, _told(data), is_patch=method == "PATCH")
        return data

    def _send(
        self, method: str, path: str, query: Query | None, content: tuple[object, str], read_timeout_s: float
    ) -> HTTPResponse:
        body, content_type = content
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            answer = self._transport.request(
                method,
                self._host + path + _query_text(query),
                headers=headers,
                body=body,
                _request_timeout=(CONNECT_TIMEOUT_S, read_timeout_s),
            )
        except (HTTPError, ApiException, OSError) as error:
            raise Unreachable(_brief(error)) from error
        response: HTTPResponse = answer.response
        return response

    @staticmethod
    def _read(response: HTTPResponse) -> bytes:
        try:
            return response.read()
        except (HTTPError, OSError) as error:
            raise Unreachable(_brief(error)) from error
        finally:
            response.release_conn()


def _query_text(query: Query | None) -> str:
    pairs = {key: _text(value) for key, value in (query or {}).items() if value != ""}
    return "?" + urlencode(pairs) if pairs else ""


def _text(value: str | int | bool) -> str:  # noqa: FBT001 -- a value of the query, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decoded(decode: Callable[[bytes], Answer], data: bytes) -> Answer:
    try:
        return decode(data)
    except ValueError as error:
        raise Unreachable(f"the answer is none of a Kubernetes API server: {error}") from error


def _told(data: bytes) -> JsonObject:
    """Return what a refusal says; nothing when it is no JSON object, such as a proxy's page."""
    try:
        return WHOLE.object(data)
    except ValueError:
        return {}


def _brief(error: Exception) -> str:
    """Say what happened without the addresses of objects that urllib3 puts in front."""
    text = str(getattr(error, "reason", "") or error).replace("\n", " ")
    return f"no answer: {text.rpartition(': ')[2] or type(error).__name__}"[:280]
