"""The failure switches over HTTP, under `/simulated/`, with the token of the API."""

from dataclasses import fields
from typing import Any

import orjson
from aiohttp import web

from clusters.simulated.cluster import Cluster
from clusters.simulated.errors import bad_request, not_found
from clusters.simulated.exporter import forced_values
from clusters.simulated.failures import Act, LostReply
from clusters.simulated.resources import BY_KIND, NODES
from clusters.simulated.server import Server


class Control:
    """Routes: see `routes`. Bodies are JSON; a switch that needs none takes an empty body."""

    def __init__(self, cluster: Cluster, server: Server) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._server = server

    def routes(self) -> dict[str, Any]:
        return {
            "POST /simulated/nodes/{node}/fail": self._fail_node,
            "POST /simulated/nodes/{node}/recover": self._recover_node,
            "PUT /simulated/nodes/{node}/gpus": self._set_allocatable,
            "PUT /simulated/gpus/{node}/{index}": self._force_gpu,
            "DELETE /simulated/gpus/{node}/{index}": self._free_gpu,
            "POST /simulated/outage": self._outage,
            "POST /simulated/forget-rights": self._forget_rights,
            "PUT /simulated/rights": self._rights,
            "PUT /simulated/clock": self._clock,
            "PUT /simulated/latency": self._latency,
            "PUT /simulated/exporter": self._all_exporters,
            "PUT /simulated/exporter/{node}": self._one_exporter,
            "POST /simulated/lose-reply": self._lose_reply,
            "POST /simulated/compact": self._compact,
            "PUT /simulated/null-lists": self._null_lists,
            "GET /simulated/state": self._state,
        }

    async def _fail_node(self, request: web.Request) -> web.StreamResponse:
        self._cluster.nodes.fail(request.match_info["node"])
        return _done()

    async def _recover_node(self, request: web.Request) -> web.StreamResponse:
        self._cluster.nodes.recover(request.match_info["node"])
        return _done()

    async def _set_allocatable(self, request: web.Request) -> web.StreamResponse:
        """{"allocatable": 7}"""
        self._cluster.nodes.set_allocatable(request.match_info["node"], int(await _number(request, "allocatable")))
        return _done()

    async def _force_gpu(self, request: web.Request) -> web.StreamResponse:
        """{"utilisation": 37}, also memory_used, power, temperature, xid, engine."""
        place = self._gpu(request)
        wish = await _body(request)
        try:
            values = forced_values({word: float(value) for word, value in wish.items()})
        except (KeyError, ValueError, TypeError) as error:
            raise bad_request(f"unknown or bad value: {error}") from error
        self._world.failures.forced.setdefault(place, {}).update(values)
        return _done()

    async def _free_gpu(self, request: web.Request) -> web.StreamResponse:
        self._world.failures.forced.pop(self._gpu(request), None)
        return _done()

    async def _outage(self, request: web.Request) -> web.StreamResponse:
        """{"seconds": 30}: real seconds; 0 ends a running outage."""
        self._world.failures.start_outage(await _number(request, "seconds"))
        if self._world.failures.api_is_out():
            self._server.drop_streams()
        return _done()

    async def _forget_rights(self, request: web.Request) -> web.StreamResponse:
        """{"seconds": 5}: real seconds in which every object is forbidden; 0 ends them."""
        self._world.failures.forget_rights(await _number(request, "seconds"))
        return _done()

    async def _rights(self, request: web.Request) -> web.StreamResponse:
        """{"denied": [{"verb": "create", "group": "batch", "resource": "jobs", "namespace": "a"}]}: see `Act`."""
        denied = (await _body(request)).get("denied") or []
        known = {each.name for each in fields(Act)}
        if not all(isinstance(rule, dict) and known.issuperset(rule) for rule in denied):
            raise bad_request(f"a denied act has no other fields than {sorted(known)}")
        self._world.failures.denied = denied
        return _done()

    async def _clock(self, request: web.Request) -> web.StreamResponse:
        """{"ahead": 30}: real seconds by which the server's clock is wrong, negative when it is late."""
        ahead = (await _body(request)).get("ahead")
        if isinstance(ahead, bool) or not isinstance(ahead, int | float):
            raise bad_request("ahead must be a number")
        self._world.failures.clock_ahead_s = float(ahead)
        return _done()

    async def _latency(self, request: web.Request) -> web.StreamResponse:
        """{"seconds": 0.2}: real seconds before each API answer."""
        self._world.failures.latency_s = await _number(request, "seconds")
        return _done()

    async def _all_exporters(self, request: web.Request) -> web.StreamResponse:
        """{"silent": true}"""
        self._world.failures.all_exporters_silent = bool((await _body(request)).get("silent"))
        return _done()

    async def _one_exporter(self, request: web.Request) -> web.StreamResponse:
        """{"silent": true}"""
        silent, node = bool((await _body(request)).get("silent")), request.match_info["node"]
        held = self._world.failures.silent_exporters
        (held.add if silent else held.discard)(node)
        return _done()

    async def _lose_reply(self, request: web.Request) -> web.StreamResponse:
        """{"method": "POST", "kind": "Job"}: the next such request is carried out and not answered."""
        body = await _body(request)
        method, kind = str(body.get("method", "POST")).upper(), str(body.get("kind"))
        if kind not in BY_KIND:
            raise bad_request(f"unknown kind {kind!r}")
        self._world.failures.lost_replies.append(LostReply(method, kind))
        return _done()

    async def _compact(self, request: web.Request) -> web.StreamResponse:
        """{"by_status": true} lets watches get their 410 as HTTP status instead of in the stream."""
        self._world.failures.gone_by_status = bool((await _body(request)).get("by_status"))
        self._world.store.compact()
        return _done()

    async def _null_lists(self, request: web.Request) -> web.StreamResponse:
        """{"on": true}"""
        self._world.failures.null_lists = bool((await _body(request)).get("on"))
        return _done()

    async def _state(self, _request: web.Request) -> web.StreamResponse:
        failures = self._world.failures
        body = {
            "name": self._world.name,
            "version": self._world.store.version,
            "compacted": self._world.store.compacted,
            "down_nodes": sorted(self._world.down_nodes),
            "api_is_out": failures.api_is_out(),
            "latency_s": failures.latency_s,
        }
        return web.Response(body=orjson.dumps(body), content_type="application/json")

    def _gpu(self, request: web.Request) -> tuple[str, int]:
        node, index = request.match_info["node"], request.match_info["index"]
        if self._world.store.get(NODES, "", node) is None:
            raise not_found(NODES, node)
        if not index.isdigit():
            raise bad_request(f"no GPU index: {index!r}")
        return node, int(index)


async def _body(request: web.Request) -> dict[str, Any]:
    raw = await request.read()
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        raise bad_request(str(error)) from error
    if not isinstance(body, dict):
        raise bad_request("the body must be an object")
    return body


async def _number(request: web.Request, name: str) -> float:
    value = (await _body(request)).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise bad_request(f"{name} must be a number that is not negative")
    return float(value)


def _done() -> web.Response:
    return web.Response(status=204)
