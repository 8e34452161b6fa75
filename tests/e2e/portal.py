"""A whole portal out of real processes, for journeys: its own PostgreSQL, two simulated clusters, web to collect.

portal = RunningPortal(folder, {"north": fleet, "south": fleet}, clock=10)
portal.start()
portal.api.submit({...})
portal.kill("worker")
portal.stop()
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import psutil  # type: ignore[import-untyped]
import psycopg

from clusters.simulated.fleet import with_teams
from portal.embedded.demo import application, is_answering, keep_logins, supply_loops
from portal.embedded.folder import DemoFolder, free_port
from portal.embedded.postgres import Postgres
from portal.embedded.processes import end, signal_group, spawn, sweep
from portal.embedded.supervisor import Service
from tests.clusters_running import SimulatedCluster, start_simulated

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "muster"
PATIENCE_S = 60.0
# What the test run around it says to Django, to the database and to the broker is not for this portal.
NOT_INHERITED = ("BROKER_URL", "CELERY", "DATABASE_URL", "DJANGO_", "MUSTER_", "PG", "PYTEST")
# Fast beats, and a cluster that is silent for four seconds is stale.
SETTINGS = {
    "MUSTER_DEMO": "1",
    "MUSTER_DEMO_LOAD": "0",
    "MUSTER_BEAT_S": "0.5",
    "MUSTER_SCRAPE_S": "1",
    "MUSTER_STALE_AFTER_S": "4",
    "PYTHONUNBUFFERED": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Api:
    """REST as a person with a token uses it."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, Any]:
        """One request: status code and decoded body (text where it is no JSON)."""
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        url = f"{self._url}/api/v1/{path}"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 -- our own
        try:
            with self._direct.open(request, timeout=20) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _decoded(error.read())

    def submit(self, document: Mapping[str, Any] | str, query: str = "team=vision") -> str:
        """Submit a JobSpec, or YAML as text; return the job's id."""
        kind = "application/yaml" if isinstance(document, str) else "application/json"
        status, answer = self.ask("POST", f"jobs/?{query}", document, kind=kind)
        assert status == 201, answer
        return str(answer["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        status, answer = self.ask("GET", f"jobs/{job_id}/")
        assert status == 200, answer
        found: dict[str, Any] = answer
        return found

    def act(self, job_id: str, act: str, body: Any = None) -> None:
        status, answer = self.ask("POST", f"jobs/{job_id}/{act}/", body)
        assert status == 200, answer


class RunningPortal:
    """`processes` by name: web, worker, beat, watch, collect."""

    def __init__(
        self,
        folder: Path,
        fleets: Mapping[str, dict[str, Any]],
        *,
        settings: Mapping[str, str] | None = None,
        durable: bool = False,
        **options: Any,
    ) -> None:
        self.folder = DemoFolder(folder)
        self.postgres = Postgres(folder / "postgres", log=folder / "postgres.log", durable=durable)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.clusters: dict[str, SimulatedCluster] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._fleets, self._options, self._settings = fleets, options, settings or {}

    def start(self) -> None:
        """Start everything and wait until the portal says that it is ready."""
        self.folder.claim()
        self.postgres.start()
        self.postgres.create_database(DATABASE)
        self._manage("migrate", "--no-input")
        self._start_clusters()
        self._manage("seed_demo", "--clusters", str(self.folder.clusters_file))
        keep_logins(self.log_of("seed_demo"), self.folder.logins_file)
        self.api = Api(self.url, json.loads(self.folder.logins_file.read_text())["token"])
        for name in self.services():
            self.launch(name)
        self.wait_for(lambda: is_answering(f"{self.url}/readyz"), "the portal is ready")

    def api_of(self, user: str) -> Api:
        """REST as somebody else than alice."""
        code = f"print(ApiToken.objects.create(User.objects.get(username='{user}'), name='journey')[1])"
        return Api(self.url, self.shell(f"from portal.identity.models import ApiToken, User; {code}").split()[-1])

    def shell(self, code: str) -> str:
        """Run Python inside the portal's own settings; return what it prints."""
        command = self._command("shell", "--verbosity", "0", "-c", code)
        done = subprocess.run(command, cwd=ROOT, env=self.env(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        """End everything; what does not end is killed."""
        for process in self.processes.values():
            end(process, by=signal.SIGTERM, timeout_s=10)
        for cluster in self.clusters.values():
            cluster.stop()
        self.postgres.stop()

    def services(self) -> dict[str, Service]:
        return {service.name: service for service in (*application(self.folder, self.port), *supply_loops())}

    def launch(self, name: str) -> None:
        """Start one of the portal's processes."""
        service = self.services()[name]
        env = {**self.env(), **service.env}
        command, log = service.command, self.log_of(name)
        # Killed with us: a worker that only was asked to end would wait for a database that is gone.
        self.processes[name] = spawn(command, log=log, env=env, cwd=ROOT, death_signal=signal.SIGKILL)

    def kill(self, name: str) -> None:
        """kill -9, children included."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        sweep(process)

    def halt(self, name: str) -> None:
        """Stop one of the processes as a service manager would."""
        end(self.processes.pop(name), by=signal.SIGTERM, timeout_s=15)

    def pause(self) -> None:
        """Let all of the portal's processes stand still."""
        for process in self.processes.values():
            signal_group(process, signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        for process in self.processes.values():
            signal_group(process, signal.SIGCONT)

    def restart_postgres(self) -> None:
        self.postgres.stop()
        self.postgres.start()

    def crash_postgres(self) -> None:
        """kill -9 of the server with all of its children, then start it on what it had written."""
        server = psutil.Process(int((self.postgres.data_dir / "postmaster.pid").read_text().split()[0]))
        family = [server, *server.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):  # a backend whose client had just gone
                process.kill()
        psutil.wait_procs(family, timeout=10)
        self.postgres.start()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What stands in the database."""
        with psycopg.connect(self.postgres.dsn(DATABASE)) as connection:
            return connection.execute(query, values or None).fetchall()

    def change(self, *statements: str) -> None:
        """Change rows behind the portal's back, in one transaction."""
        with psycopg.connect(self.postgres.dsn(DATABASE)) as connection:
            for statement in statements:
                connection.execute(statement)

    def held(self) -> int:
        """GPUs that the ledger says are held: rows, node counters and quota must agree."""
        # In one statement, hence of one moment.
        ((allocated, on_nodes),) = self.rows(
            "SELECT (SELECT coalesce(sum(gpus), 0) FROM jobs_allocation WHERE released_at IS NULL),"
            " (SELECT coalesce(sum(held), 0) FROM clusters_nodeaccelerator)"
        )
        assert allocated == on_nodes
        return int(allocated)

    def doctor(self) -> list[Any]:
        """What `manage.py doctor` finds wrong."""
        done = subprocess.run(self._command("doctor"), cwd=ROOT, env=self.env(), capture_output=True, text=True)
        line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
        found: list[Any] = json.loads(line)["findings"]
        return found

    def until_state(self, job_id: str, *states: str, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait for one of the states; fail at once when the job ends in another."""

        def reached() -> dict[str, Any] | None:
            job = self.api.job(job_id)
            over = job["state"] in ("succeeded", "failed", "cancelled")
            assert not over or job["state"] in states, (job["state"], job["outcome"], job["attempts"])
            return job if job["state"] in states else None

        return self.wait_for(reached, f"job {job_id} is {' or '.join(states)}", timeout_s)

    def wait_for(self, probe: Callable[[], T | None], what: str, timeout_s: float = PATIENCE_S) -> T:
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            if found := probe():
                return found
            time.sleep(0.1)
        raise AssertionError(f"not within {timeout_s:.0f} s: {what}\n{self._tails()}")

    def log_of(self, name: str) -> Path:
        return self.folder.path / f"{name}.log"

    def _start_clusters(self) -> None:
        entries = []
        for name, fleet in self._fleets.items():
            cluster = start_simulated(with_teams({**fleet, "name": name}), **self._options)
            file = self.folder.path / f"{name}.json"
            topology = [["block", "topology.muster.internal/block"], ["rack", "topology.muster.internal/rack"]]
            file.write_text(json.dumps({"topology": fleet.get("topology") or topology}))
            self.clusters[name] = cluster
            entries.append({"name": name, "server": cluster.url, "token": cluster.token, "fleet": str(file)})
        self.folder.clusters_file.write_text(json.dumps({"clusters": entries}))

    def _manage(self, *words: str) -> None:
        with self.log_of(words[0]).open("wb") as log:
            command = self._command(*words)
            done = subprocess.run(command, cwd=ROOT, env=self.env(), stdout=log, stderr=subprocess.STDOUT)
        assert done.returncode == 0, self.log_of(words[0]).read_text()[-3000:]

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *words]

    def env(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(NOT_INHERITED)}
        return {**inherited, **SETTINGS, **self._settings, "DATABASE_URL": self.postgres.url(DATABASE)}

    def _tails(self) -> str:
        texts = {name: self.log_of(name).read_text(errors="replace") for name in ("worker", "watch", "web")}
        return "\n".join(f"--- {name}\n{text[-1500:]}" for name, text in texts.items())


@contextmanager
def running_portal(fleets: Mapping[str, dict[str, Any]], **options: Any) -> Iterator[RunningPortal]:
    """A portal that lives as long as the block."""
    with TemporaryDirectory(prefix="muster-e2e-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # root's server runs as nobody, who must be able to pass
        portal = RunningPortal(Path(folder), fleets, **options)
        try:
            portal.start()
            yield portal
        finally:
            portal.stop()


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
