"""`./run kube`: real Kubernetes control planes to register in a portal, until Ctrl-C."""

import argparse
import json
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from portal.embedded.folder import write_private
from tests.kube.build import VERSIONS, BuildError, binaries
from tests.kube.fleet import LEVELS
from tests.kube.plane import ControlPlane, PlaneError, running_plane

_POLL_S = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: list[str]) -> int:
    """Run until asked to stop. Return the exit code."""
    options = _parse(arguments)
    for number in _SIGNALS:
        signal.signal(number, _leave)
    try:
        binaries(options.version)
        if options.build:
            return 0
        with ExitStack() as stack:
            return _run(stack, options)
    except (BuildError, PlaneError) as error:
        print(f"\nThe control plane cannot start. {error}", file=sys.stderr)
        return 1


def _run(stack: ExitStack, options: argparse.Namespace) -> int:
    planes = []
    for number in range(1, options.clusters + 1):
        began = time.monotonic()
        name = f"kube{number}"
        plane = stack.enter_context(running_plane(name, version=options.version, nodes=options.nodes))
        planes.append(plane)
        print(f"{name}: Kubernetes {VERSIONS[options.version]}, ready after {time.monotonic() - began:.1f} s")
        print(f"  the portal's account: {plane.kubeconfig}")
        print(f"  every right:          {plane.admin_kubeconfig}", flush=True)
    _explain()
    if options.announce:
        stack.callback(options.announce.unlink, missing_ok=True)
        write_private(options.announce, _announcement(planes))
    return _keep(planes)


def _announcement(planes: list[ControlPlane]) -> str:
    """What whoever started us needs to know."""
    clusters = [
        {
            "name": plane.name,
            "kubeconfig": str(plane.kubeconfig),
            "admin_kubeconfig": str(plane.admin_kubeconfig),
            "levels": LEVELS,
            "nodes": len(plane.admin.items("Node")),
        }
        for plane in planes
    ]
    return json.dumps({"clusters": clusters, "kubectl": str(binaries(planes[0].version)["kubectl"])}, indent=2)


def _explain() -> None:
    levels = ", ".join(f"{name} = {key}" for name, key in LEVELS)
    print("\nTo register one, sign in as an administrator, choose Clusters, Register a cluster, and paste the portal's")
    print(f"kubeconfig. Topology levels, widest first: {levels}.")
    print("Pods do not run, KWOK says that they do: SIM_RUN_S and SIM_EXIT_CODE of a job choose its end. Stop: Ctrl-C.")
    sys.stdout.flush()


def _keep(planes: list[ControlPlane]) -> int:
    while True:
        time.sleep(_POLL_S)
        for plane in planes:
            if part := plane.ended():
                print(f"{plane.name}: {part} ended by itself; see the end of its log:", file=sys.stderr)
                print(plane.log_of(part).read_text(errors="replace")[-2000:], file=sys.stderr)
                return 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run kube",
        description="Start real Kubernetes control planes with fake GPU nodes, for a portal to register. The first "
        "run on a machine builds them from Go modules, which takes some minutes.",
    )
    parser.add_argument("--clusters", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--nodes", type=int, default=16, help="GPU nodes of each, of eight GPUs (default 16)")
    parser.add_argument("--version", choices=sorted(VERSIONS), default="1.36", help="of Kubernetes (default 1.36)")
    parser.add_argument("--announce", type=Path, help="write a file about them as soon as all are ready")
    parser.add_argument("--build", action="store_true", help="build what is missing and stop there")
    return parser.parse_args(arguments)


def _leave(number: int, frame: FrameType | None) -> None:
    for each in _SIGNALS:  # once is enough: the parts stop in their order
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(0 if number == signal.SIGINT else 128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
