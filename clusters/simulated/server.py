"""The HTTP side of the API: authentication, verbs, bodies, streams."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

import orjson
from aiohttp import web

from clusters.simulated import patch
from clusters.simulated.api import Deletion
from clusters.simulated.authorization import ANONYMOUS, refusal, wish_of
from clusters.simulated.errors import (
    ApiError,
    bad_request,
    invalid_policy,
    method_not_allowed,
    unauthorized,
    unknown_path,
    unsupported_media,
)
from clusters.simulated.evictions import evict
from clusters.simulated.exporter import metrics_text
from clusters.simulated.identity import ADMINISTRATOR, Identities, User
from clusters.simulated.listing import Page, list_objects, selected
from clusters.simulated.logs import LogRequest, follow_log, read_log
from clusters.simulated.matching import Selection, parse_field_selector, parse_label_selector
from clusters.simulated.resources import DEPLOYMENTS, PODS, REPLICA_SETS, SERVICE_ACCOUNTS, STATEFUL_SETS, Obj, Resource
from clusters.simulated.reviews import review
from clusters.simulated.routing import Target, discovery, parse_path
from clusters.simulated.scaling import read_scale, write_scale
from clusters.simulated.watching import Watch, WatchOptions, check_version, error_event
from clusters.simulated.world import World

logger = logging.getLogger(__name__)

_OPEN_PATHS = ("/version", "/readyz", "/livez", "/healthz")
_USER: web.RequestKey[User] = web.RequestKey("user", User)
_MAX_BODY = 3 * 1024 * 1024
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Serves one world. `token` is the bearer token of the API and of the control plane."""

    def __init__(self, world: World, token: str) -> None:
        self._world = world
        self._identities = Identities(world.store, token)
        self._streams: set[Watch] = set()
        self._connections: set[asyncio.Transport] = set()

    def application(self, control: dict[str, _Handler]) -> web.Application:
        """`control` are the handlers of the failure switches, by route `METHOD path`."""
        application = web.Application(middlewares=[self._guard], client_max_size=_MAX_BODY)
        application.router.add_get("/exporter/{node}/metrics", self._exporter)
        for route, handler in control.items():
            method, _, path = route.partition(" ")
            application.router.add_route(method, path, handler)
        application.router.add_route("*", "/{path:.*}", self._kubernetes)
        application.on_response_prepare.append(self._set_clock)
        application.on_shutdown.append(self._on_shutdown)
        return application

    def drop_streams(self) -> None:
        """Ends every open watch at once, without a closing chunk."""
        for watch in tuple(self._streams):
            watch.close()
        for transport in tuple(self._connections):
            transport.abort()

    async def _on_shutdown(self, _application: web.Application) -> None:
        self.drop_streams()

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await self._guarded(request, handler)
        except ApiError as error:
            return _json(error.status(), error.code)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except web.HTTPRequestEntityTooLarge:
            text = f"Request entity too large: limit is {_MAX_BODY}"
            return _json(ApiError(413, "RequestEntityTooLarge", text).status(), 413)
        except web.HTTPException as error:
            return _json(ApiError(error.status, "Unknown", error.reason or "").status(), error.status)
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            return _json(ApiError(500, "InternalError", f"Internal error occurred: {error!r}").status(), 500)

    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        path, failures = request.path, self._world.failures
        if path.startswith("/exporter/"):
            return await handler(request)
        user = request[_USER] = self._authenticate(request)
        if path.startswith("/simulated/"):
            if user.name != ADMINISTRATOR:
                raise unauthorized() if user.name == ANONYMOUS else unknown_path()
            return await handler(request)
        if user.name == ANONYMOUS and (path.rstrip("/") not in _OPEN_PATHS):
            raise refusal(ANONYMOUS, request.method, path, watches=_watches(request))
        if failures.api_is_out():
            return _hang_up(request)
        if failures.latency_s:
            await asyncio.sleep(failures.latency_s)
        return await handler(request)

    def _authenticate(self, request: web.Request) -> User:
        """Whose token it is; what brings no bearer token at all is anonymous. Raises 401 else."""
        scheme, _space, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given:
            return User(ANONYMOUS, ("system:unauthenticated",))
        return self._identities.user_of(given)

    async def _set_clock(self, _request: web.Request, response: web.StreamResponse) -> None:
        if ahead := self._world.failures.clock_ahead_s:
            response.headers["Date"] = formatdate(self._world.clock.now() + ahead, usegmt=True)

    async def _exporter(self, request: web.Request) -> web.StreamResponse:
        node = request.match_info["node"]
        text = metrics_text(self._world, node)
        if text is None:
            return _hang_up(request)
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    async def _kubernetes(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path == "/version":
            return _json(self._world.version())
        if path in _OPEN_PATHS:
            is_ready = path != "/readyz" or self._world.failures.has_read_its_roles()
            return web.Response(text="ok") if is_ready else web.Response(status=500, text="informer-sync failed")
        if request.method == "POST" and (ask := review(path)):
            return _json(ask(self._world.failures, request[_USER], await _body(request)), 201)
        document = discovery(path)
        if document is not None:
            return _json(document)
        target = parse_path(path)
        wish = wish_of(request.method, path, watches=_watches(request))
        if wish and self._world.failures.denies(wish.act):
            raise refusal(request[_USER].name, request.method, path, watches=_watches(request))
        answer = await self._dispatch(request, target)
        if self._world.failures.takes_reply(request.method, target.resource.kind):
            return _hang_up(request)
        return answer

    async def _dispatch(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.subresource in ("log", "eviction", "scale", "token"):
            return await self._subresource(request, target)
        method = request.method
        if method == "GET":
            return await self._get(request, target)
        if method == "POST" and not target.name and not (target.resource.namespaced and not target.namespace):
            body = await _body(request)
            created = self._world.api.create(target.resource, target.namespace, body, dry_run=_dry_run(request))
            return _object(target.resource, created, 201)
        if method in ("PUT", "PATCH") and target.name:
            return await self._write(request, target)
        if method == "DELETE" and target.subresource == "":
            return await self._delete(request, target)
        raise method_not_allowed()

    async def _get(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.name:
            if _watches(request):
                raise bad_request("watching one object by its path is not supported; use a field selector")
            found = self._world.api.read(target.resource, target.namespace, target.name)
            return _object(target.resource, found)
        selection = _selection(request, target)
        if _watches(request):
            return await self._watch(request, selection)
        try:
            check_version(request.query.get("resourceVersion", ""))
        except ApiError as error:
            raise bad_request(f"invalid resource version: {error.message}") from error
        page = Page(
            limit=_integer(request, "limit"),
            token=request.query.get("continue", ""),
            nulls=self._world.failures.null_lists,
            metadata_only="as=PartialObjectMetadataList" in request.headers.get("Accept", ""),
        )
        body = list_objects(self._world.store, selection, page)
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, selection: Selection) -> web.StreamResponse:
        options = WatchOptions(
            version=request.query.get("resourceVersion", ""),
            bookmarks=request.query.get("allowWatchBookmarks") in ("1", "true"),
            initial_events=request.query.get("sendInitialEvents") in ("1", "true"),
            timeout_s=float(_integer(request, "timeoutSeconds")),
        )
        watch = Watch(self._world.store, selection, options)
        refused: ApiError | None = None
        try:
            watch.open()
        except ApiError as error:
            if error.code != 410 or self._world.failures.gone_by_status:
                raise
            refused = error
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if refused is not None:
            await response.write(error_event(refused))
            return response
        await self._stream(request, response, watch)
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse, watch: Watch) -> None:
        transport = request.transport
        self._streams.add(watch)
        if transport is not None:
            self._connections.add(transport)
        try:
            await watch.run(response)
        except ConnectionError:
            return
        finally:
            watch.close()
            self._streams.discard(watch)
            if transport is not None:
                self._connections.discard(transport)

    async def _write(self, request: web.Request, target: Target) -> web.StreamResponse:
        body = await _body(request)
        api, status, dry_run = self._world.api, target.subresource == "status", _dry_run(request)
        if request.method == "PUT":
            stored = api.replace(target.resource, target.namespace, target.name, body, status=status, dry_run=dry_run)
        else:
            key = (target.namespace, target.name)
            kind = _patch_kind(request)
            stored = api.patch(target.resource, key, (kind, body), status=status, dry_run=dry_run)
        return _object(target.resource, stored)

    async def _delete(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = await _deletion(request)
        resource = target.resource
        if not target.name:
            return self._delete_collection(_selection(request, target), options)
        obj, gone = self._world.api.delete(resource, target.namespace, target.name, options)
        if not gone or resource.echoes_deleted:
            return _object(resource, obj)
        details = {"name": target.name, "group": resource.group, "kind": resource.plural}
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json({**success, "details": {**details, "uid": obj["metadata"]["uid"]}})

    def _delete_collection(self, selection: Selection, options: Deletion) -> web.StreamResponse:
        for stored in selected(self._world.store, selection):
            self._world.api.delete(selection.resource, *stored.key, options)
        body = list_objects(self._world.store, selection, Page())
        return web.Response(body=body, content_type="application/json")

    async def _subresource(self, request: web.Request, target: Target) -> web.StreamResponse:
        method, resource = request.method, target.resource
        if target.subresource == "log" and method == "GET":
            return await self._log(request, target)
        if target.subresource == "eviction" and method == "POST":
            await _body(request)
            evict(self._world, target.namespace, target.name)
            return _json({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)
        if target.subresource == "token" and method == "POST":
            account = self._world.api.read(SERVICE_ACCOUNTS, target.namespace, target.name)
            return _json(self._identities.issue(account, await _body(request)), 201)
        if target.subresource == "scale" and resource in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS):
            key = (target.namespace, target.name)
            if method == "GET":
                return _json(read_scale(self._world.api, resource, key))
            if method in ("PUT", "PATCH"):
                kind = _patch_kind(request) if method == "PATCH" else patch.MERGE_PATCH
                scale = write_scale(
                    self._world.api, resource, key, (kind, await _body(request)), dry_run=_dry_run(request)
                )
                return _json(scale)
        raise method_not_allowed()

    async def _log(self, request: web.Request, target: Target) -> web.StreamResponse:
        pod = self._world.api.read(PODS, target.namespace, target.name)
        wanted = LogRequest(
            container=request.query.get("container", ""),
            tail=_integer(request, "tailLines") if "tailLines" in request.query else None,
            limit_bytes=_integer(request, "limitBytes"),
            since_s=_integer(request, "sinceSeconds"),
            timestamps=request.query.get("timestamps") in ("1", "true"),
        )
        if not pod["spec"].get("nodeName"):
            read_log(self._world, pod, wanted)  # a container that does not exist is refused first
            return web.Response(status=204)
        if request.query.get("follow") not in ("1", "true"):
            return web.Response(body=read_log(self._world, pod, wanted), content_type="text/plain")
        read_log(self._world, pod, wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        try:
            async for chunk in follow_log(self._world, pod, wanted):
                await response.write(chunk)
        except ConnectionError:
            return response
        return response


def _watches(request: web.Request) -> bool:
    return request.query.get("watch") in ("1", "true")


def _selection(request: web.Request, target: Target) -> Selection:
    return Selection(
        target.resource,
        namespace=target.namespace,
        labels=parse_label_selector(request.query.get("labelSelector", "")),
        fields=parse_field_selector(target.resource, request.query.get("fieldSelector", "")),
    )


async def _body(request: web.Request) -> Any:
    if request.method != "PATCH" and request.content_type not in (
        "application/json",
        "application/octet-stream",
    ):
        raise unsupported_media()
    raw = await request.read()
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


async def _deletion(request: web.Request) -> Deletion:
    raw = await request.read()
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(body, dict):
        raise bad_request("DeleteOptions must be an object")
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy")
    if policy not in (None, "Foreground", "Background", "Orphan"):
        raise invalid_policy(str(policy))
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    if grace is not None and not str(grace).isdigit():
        raise bad_request(f"invalid gracePeriodSeconds: {grace!r}")
    return Deletion(
        policy=policy,
        grace_s=None if grace is None else int(grace),
        uid=conditions.get("uid"),
        version=conditions.get("resourceVersion"),
        dry_run=_dry_run(request) or "All" in (body.get("dryRun") or ()),
    )


def _patch_kind(request: web.Request) -> str:
    if request.content_type not in patch.SUPPORTED:
        raise unsupported_media()
    return request.content_type


def _dry_run(request: web.Request) -> bool:
    wish = request.query.get("dryRun")
    if wish not in (None, "All"):
        raise bad_request(f'dryRun: Unsupported value: {wish!r}: supported values: "All"')
    return wish == "All"


def _integer(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    if text and not text.isdigit():
        raise bad_request(f"strconv.ParseInt: parsing {text!r}: invalid syntax")
    return int(text or 0)


def _object(resource: Resource, obj: Obj, code: int = 200) -> web.Response:
    body = resource.prefix + orjson.dumps(obj)[1:]
    return web.Response(body=body, status=code, content_type="application/json")


def _json(body: Any, code: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=code, content_type="application/json")


def _hang_up(request: web.Request) -> web.Response:
    """Closes the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
