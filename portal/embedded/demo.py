"""`./run demo`: everything that a portal with two simulated clusters needs, started from nothing.

With --kube a real control plane comes beside them. It is started, and its YAML applied, by the ways that an
administrator has: a process of `./run kube`, and kubectl.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from portal.embedded.folder import (
    ClusterEntry,
    DemoFolder,
    FolderError,
    free_port,
    is_port_free,
    write_private,
)
from portal.embedded.postgres import Postgres, PostgresError
from portal.embedded.processes import tied
from portal.embedded.steps import Steps, tail
from portal.embedded.supervisor import ProcessFailedError, Service, StopRequestedError, Supervisor

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "muster"
KUBE_NODES = 16
CLUSTERS = {"sim-east": 32, "sim-west": 32}  # nodes of 8 GPUs: 64 nodes, 512 GPUs
# One thread each: a dozen processes with a thread pool per core would fight for the cores.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
_PROBE_S = 0.2  # readiness asks the database and the broker: asking more often would slow the start down
_SERVERS, _APPLICATION = 1, 2  # stages: PostgreSQL is stage 0 and goes last


def main(arguments: list[str]) -> int:
    """Run the demo until it is asked to stop. Return the exit code."""
    options = _parse(arguments)
    steps = Steps()
    folder = DemoFolder(options.data)
    if options.kube and not _has_kubernetes(steps):
        return 1
    try:
        folder.claim()
        port = _choose_port(options.port)
        return _run(folder, port, steps, fresh=options.fresh, with_kube=options.kube)
    except StopRequestedError:
        steps.say("Stopped.")
        return 0
    except (FolderError, PostgresError) as error:
        steps.say(f"\nThe demo cannot start. {error}")
    except ProcessFailedError as error:
        steps.say(_explain(error, folder))
    return 1


def child_env(folder: DemoFolder) -> dict[str, str]:
    """Return the environment of the demo's processes: ours, the demo's settings, the keys of this folder."""
    keys = folder.keys()
    defaults = {"SECRET_KEY": keys["secret_key"], "MUSTER_ENCRYPTION_KEYS": keys["encryption_key"]}
    fixed = {"MUSTER_DEMO": "1", "MUSTER_DEMO_DATA": str(folder.path), "PYTHONUNBUFFERED": "1"}
    return defaults | _ONE_THREAD | _without_libpq(os.environ, external="DATABASE_URL" in os.environ) | fixed


def _has_kubernetes(steps: Steps) -> bool:
    """Build what this machine has none of yet; say what is missing where that cannot be done."""
    steps.say("Kubernetes: what this machine has none of yet is built first, which takes several minutes.")
    command = tied(_module("tests.kube", "--build"), death_signal=signal.SIGKILL)
    try:
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0  # noqa: S603 -- written above
    except KeyboardInterrupt:  # which the compiler got from the terminal as well
        return False


def _run(folder: DemoFolder, port: int, steps: Steps, *, fresh: bool, with_kube: bool) -> int:
    steps.say(f"Muster demo in {folder.path}")
    postgres = None if "DATABASE_URL" in os.environ else Postgres(folder.postgres, log=folder.logs / "postgres.log")
    if fresh:
        _clear(folder, postgres)
    folder.turn_logs()
    supervisor = Supervisor(logs=folder.logs, env=child_env(folder), cwd=ROOT, say=steps.say)
    with ExitStack() as stack:
        if postgres:
            stack.callback(postgres.remove_socket_dir)
        stack.enter_context(supervisor)
        demo = _Demo(folder, port, supervisor, steps, with_kube=with_kube)
        demo.start(postgres)
        steps.say(f"\nMuster is ready after {steps.seconds():.1f} s: {demo.url}\n{_sign_in_lines(folder)}")
        steps.say(f"  {demo.clusters_line()} Logs: {folder.logs}. Stop: Ctrl-C.")
        supervisor.keep()
        steps.say("Stopping ...")
    return 0


def _clear(folder: DemoFolder, postgres: Postgres | None) -> None:
    if postgres:
        postgres.refuse_if_in_use()
    folder.clear()


class _Demo:
    """The order of the start; what does not depend on each other starts side by side."""

    def __init__(self, folder: DemoFolder, port: int, supervisor: Supervisor, steps: Steps, *, with_kube: bool) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._port = port
        self._supervisor = supervisor
        self._steps = steps
        self._kube = folder.kube_file if with_kube else None

    def clusters_line(self) -> str:
        """What is real about the clusters, for people."""
        if self._kube is None:
            return "The clusters are simulated."
        return f"{' and '.join(CLUSTERS)} are simulated; kube1 is real Kubernetes with fake nodes (KWOK), without logs."

    def start(self, postgres: Postgres | None) -> None:
        """Start everything; without an embedded PostgreSQL, DATABASE_URL of the environment is used."""
        if postgres:
            with self._steps.step("PostgreSQL"):
                self._start_postgres(postgres)
        self._supervisor.begin("migrate", _manage("migrate", "--no-input"))
        if self._kube:
            self._supervisor.start(_control_plane(self._kube))
        with self._steps.step("simulated clusters"):
            self._start_clusters()
        with self._steps.step("database schema"):
            self._supervisor.finish("migrate", timeout_s=180)
        if self._kube:
            with self._steps.step("real control plane"):
                self._wait_for_control_plane(self._kube)
        self._supervisor.begin("seed", self._seed_command())
        self._start_all(application(self._folder, self._port))
        with self._steps.step("demo data"):
            self._supervisor.finish("seed", timeout_s=180)
            keep_logins(self._supervisor.log_of("seed"), self._folder.logins_file)
        if self._kube:
            with self._steps.step("its rights, spaces and policies"):
                self._supervisor.begin("kube-apply", _apply_command(self._kube))
                self._supervisor.finish("kube-apply", timeout_s=120)
        self._start_all(supply_loops())  # they take the clusters that the seed registers
        with self._steps.step("web, worker, beat, watch, collect"):
            self._wait_for_readiness()

    def _start_postgres(self, postgres: Postgres) -> None:
        command, log = tuple(postgres.prepare()), self._supervisor.log_of("postgres")
        service = Service("postgres", command, env={"LC_ALL": "C"}, stop_signal=signal.SIGINT, stop_timeout_s=20)
        self._supervisor.start(service)
        self._supervisor.wait_until(postgres.is_ready, what="PostgreSQL to accept connections", log=log, timeout_s=60)
        postgres.create_database(DATABASE)
        self._supervisor.env["DATABASE_URL"] = postgres.url(DATABASE)

    def _start_clusters(self) -> None:
        clusters = self._folder.cluster_entries(tuple(CLUSTERS))
        missing = [cluster for cluster in clusters if not Path(cluster["fleet"]).exists()]
        for cluster in missing:
            self._supervisor.begin(f"fleet-{cluster['name']}", _fleet_command(cluster))
        for cluster in missing:
            self._supervisor.finish(f"fleet-{cluster['name']}", timeout_s=30)
        self._start_all([_simulated(cluster) for cluster in clusters])
        for cluster in clusters:
            self._wait_for(f"{cluster['server']}/readyz", _service_name(cluster), timeout_s=30)

    def _seed_command(self) -> tuple[str, ...]:
        kube = ("--kube", str(self._kube)) if self._kube else ()
        return _manage("seed_demo", "--clusters", str(self._folder.clusters_file), *kube)

    def _wait_for_control_plane(self, file: Path) -> None:
        log = self._supervisor.log_of("kube")
        self._supervisor.wait_until(file.exists, what="the control plane", log=log, timeout_s=180, poll_s=_PROBE_S)

    def _start_all(self, services: list[Service]) -> None:
        for service in services:
            self._supervisor.start(service)

    def _wait_for_readiness(self) -> None:
        url = f"{self.url}/readyz"
        try:
            self._wait_for(url, "web", timeout_s=120)
        except ProcessFailedError as error:
            raise ProcessFailedError(f"{error}{_complaint(url)}", error.log) from error

    def _wait_for(self, url: str, service: str, *, timeout_s: float) -> None:
        log = self._supervisor.log_of(service)
        ready = partial(is_answering, url)
        self._supervisor.wait_until(ready, what=url, log=log, timeout_s=timeout_s, poll_s=_PROBE_S)


def application(folder: DemoFolder, port: int) -> list[Service]:
    """Return the processes that answer people and run tasks."""
    celery = _module("celery", "-A", "portal.celery")
    beat = (*celery, "beat", "--schedule", str(folder.beat_schedule), "--pidfile", "")
    return [
        Service("web", _granian(port), _APPLICATION, env={"MUSTER_DATABASE_POOL_SIZE": "8"}),
        Service(
            "worker",
            (*celery, "worker", "-c", "2", "--without-gossip", "--without-mingle", "--without-heartbeat"),
            _APPLICATION,
        ),
        Service("beat", beat, _APPLICATION),
    ]


def supply_loops() -> list[Service]:
    """Return the processes that follow the clusters."""
    return [
        Service("watch", _manage("watch_clusters"), _APPLICATION),
        Service("collect", _manage("collect_telemetry"), _APPLICATION),
    ]


def is_answering(url: str) -> bool:
    """Whether a server on the loopback interface answers 200."""
    try:
        with _open(url) as answer:
            return bool(answer.status == 200)
    except OSError:  # which urllib's own errors are
        return False


def _complaint(url: str) -> str:
    """Return what the portal itself says is missing."""
    try:
        with _open(url):
            return ""
    except urllib.error.HTTPError as error:
        return f"; it answers {error.code}: {error.read(500).decode(errors='replace')}"
    except OSError:
        return "; nothing answers there"


def _open(url: str) -> http.client.HTTPResponse:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy of the environment is not for us
    answer: http.client.HTTPResponse = direct.open(url, timeout=5)
    return answer


def keep_logins(log: Path, file: Path) -> None:
    """Keep the sign-in data that seed_demo printed as a line of JSON; a token is told once, so an old one stays."""
    told: dict[str, Any] = {}
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{") and '"logins"' in line:
            told = json.loads(line)
    kept = json.loads(file.read_text()) if file.exists() else {}
    write_private(file, json.dumps(kept | {name: value for name, value in told.items() if value}, indent=2))


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run demo", description="Start the portal with two simulated clusters.")
    parser.add_argument(
        "--port", type=int, default=8000, help="port of the pages (default 8000); 0 takes any that is free"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=ROOT / ".muster" / "demo",
        help="folder that keeps everything between starts (default .muster/demo)",
    )
    parser.add_argument(
        "--kube",
        action="store_true",
        help="add a real Kubernetes control plane with fake nodes (KWOK); the first time builds it, which takes "
        "several minutes and needs Go 1.26, unless KUBEBUILDER_ASSETS names a folder of ready binaries",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="begin anew: remove what an earlier start left in the folder"
    )
    return parser.parse_args(arguments)


def _choose_port(wanted: int) -> int:
    if wanted == 0:
        return free_port()
    if not is_port_free(wanted):
        raise FolderError(f"Port {wanted} is in use: give another one with --port N, or --port 0 for any free one.")
    return wanted


def _without_libpq(environ: Mapping[str, str], *, external: bool) -> dict[str, str]:
    """Leave out PGPORT, PGSSLMODE and their like, which belong to another server than the embedded one."""
    return {name: value for name, value in environ.items() if external or not name.startswith("PG")}


def _manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(ROOT / "manage.py"), *words)


def _module(name: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *words)


def _granian(port: int) -> tuple[str, ...]:
    served = ("--interface", "asginl", "portal.asgi:application", "--host", "127.0.0.1", "--port", str(port))
    # Without the time-out an open event stream keeps the server from ever stopping.
    return _module("granian", *served, "--workers", "1", "--workers-kill-timeout", "3")


def _fleet_command(cluster: ClusterEntry) -> tuple[str, ...]:
    nodes = str(CLUSTERS[cluster["name"]])
    return _module("clusters.simulated.fleet", "--nodes", nodes, "--out", cluster["fleet"])


def _simulated(cluster: ClusterEntry) -> Service:
    options = ("--fleet", cluster["fleet"], "--port", str(cluster["port"]), "--state", cluster["state"])
    # The token in the environment: a command line can be read by every user of the machine.
    token = {"SIMULATED_TOKEN": cluster["token"]}
    return Service(_service_name(cluster), _module("clusters.simulated", *options), _SERVERS, env=token)


def _control_plane(file: Path) -> Service:
    """A real control plane. One that ends is another when it starts again, so it is not started again."""
    file.unlink(missing_ok=True)
    words = ("--nodes", str(KUBE_NODES), "--announce", str(file))
    return Service("kube", _module("tests.kube", *words), _SERVERS, stop_timeout_s=60, is_restarted=False)


def _apply_command(file: Path) -> tuple[str, ...]:
    """What the documentation tells the administrator of a cluster to do."""
    told = json.loads(file.read_text())
    (cluster,) = told["clusters"]
    made = file.with_name("kube.yaml")
    # Its cache beside the kubeconfig, which goes with the control plane.
    kubectl = '"$KUBECTL" --kubeconfig "$ADMIN" --cache-dir "$ADMIN.cache"'
    script = f'"$@" >"$MADE" && exec {kubectl} apply --server-side --force-conflicts -f "$MADE"'
    names = {"MADE": str(made), "KUBECTL": told["kubectl"], "ADMIN": cluster["admin_kubeconfig"]}
    words = _manage("cluster_manifests", "--level", "B", "--spaces", "--guards", "deny", "--renew-token")
    return ("env", *(f"{name}={value}" for name, value in names.items()), "sh", "-c", script, "apply", *words)


def _service_name(cluster: ClusterEntry) -> str:
    return f"cluster-{cluster['name']}"


def _sign_in_lines(folder: DemoFolder) -> str:
    logins = json.loads(folder.logins_file.read_text()).get("logins", [])
    return "\n".join(f"  sign in as {login['user']} / {login['password']} ({login['role']})" for login in logins)


def _explain(error: ProcessFailedError, folder: DemoFolder) -> str:
    return (
        f"\nThe demo cannot start: {error}.\nThe end of its log, {error.log}:\n{tail(error.log)}\n"
        f"What to do: mend what the log says and start again; if the data of an older version is in the way, "
        f"start over with: ./run demo --fresh --data {folder.path}"
    )
