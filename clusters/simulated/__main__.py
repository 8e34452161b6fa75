"""`python -m clusters.simulated --fleet FILE`: one simulated cluster until SIGTERM."""

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from clusters.simulated.cluster import Cluster, Options, make_cluster
from clusters.simulated.control import Control
from clusters.simulated.devices import gpu_count
from clusters.simulated.kubelet import KubeletOptions
from clusters.simulated.quantities import amounts
from clusters.simulated.resources import NODES
from clusters.simulated.server import Server

_PARENT_CHECK_S = 0.5


def main() -> None:
    arguments = _parser().parse_args()
    if not arguments.token:
        sys.exit("a token is needed: --token or SIMULATED_TOKEN")
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # JSON trees hold no cycles: walking all of them again and again would cost more than all other work.
    gc.set_threshold(200_000, 50, 1000)
    asyncio.run(_serve(arguments))
    # The interpreter's last collection would walk the whole store once more before it ends.
    gc.freeze()


async def _serve(arguments: argparse.Namespace) -> None:
    parent = os.getppid()  # before anybody is told that we are here: who ends then must be missed
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    fleet = json.loads(arguments.fleet.read_text())
    kubelet = KubeletOptions(default_run_s=arguments.default_run_s, pull_s=arguments.pull_s)
    cluster = make_cluster(fleet, Options(arguments.clock, arguments.history, arguments.state, kubelet))
    server = Server(cluster.world, arguments.token)
    application = server.application(Control(cluster, server).routes())
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, arguments.host, arguments.port)
    await site.start()
    port = runner.addresses[0][1]
    print(json.dumps(_announcement(cluster, f"http://{arguments.host}:{port}")), flush=True)
    if arguments.parent_pid_death:
        orphaned = asyncio.create_task(_watch_parent(parent, stop))
    await stop.wait()
    if arguments.parent_pid_death:
        orphaned.cancel()
    if cluster.state is not None:
        cluster.state.save()
    await runner.cleanup()


async def _watch_parent(parent: int, stop: asyncio.Event) -> None:
    """Asking for the parent works in every system and does not depend on which thread started us."""
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_CHECK_S)
    stop.set()


def _announcement(cluster: Cluster, url: str) -> dict[str, object]:
    nodes = [stored.object for stored in cluster.world.store.all(NODES)]
    return {
        "url": url,
        "exporter": f"{url}/exporter/{{node}}/metrics",
        "name": cluster.world.name,
        "nodes": len(nodes),
        "gpus": sum(gpu_count(amounts(node["status"]["capacity"])) for node in nodes),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m clusters.simulated", description=__doc__)
    parser.add_argument("--fleet", type=Path, required=True, help="JSON file, see clusters/simulated/fleet.py")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--token", default=os.environ.get("SIMULATED_TOKEN", ""))
    parser.add_argument("--clock", type=float, default=1.0, help="simulated seconds per real second")
    parser.add_argument("--state", type=Path, default=None, help="file to save to and to start from")
    parser.add_argument("--history", type=int, default=10_000, help="changes that a watch can resume over")
    parser.add_argument("--default-run-s", type=float, default=600.0, help="of jobs without SIM_RUN_S")
    parser.add_argument("--pull-s", type=float, default=0.5, help="first pull of an image on a node")
    parser.add_argument("--parent-pid-death", action="store_true", help="stop when the parent process is gone")
    return parser


if __name__ == "__main__":
    main()
