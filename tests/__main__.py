"""`./run test [pytest arguments]`: the whole suite on an embedded PostgreSQL, or on DATABASE_URL."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from portal.embedded.postgres import Postgres
from portal.embedded.processes import tied

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = {
    "MUSTER_DEMO": "1",
    "DJANGO_SETTINGS_MODULE": "portal.settings",
    "BROKER_URL": "memory://",  # hints go nowhere; journeys start a portal of their own, with a real broker
    "DJANGO_ALLOW_ASYNC_UNSAFE": "true",  # Playwright's synchronous interface runs an event loop of its own
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
# Real control planes share one, and its two cores are busy enough.
_OWN_WORKERS = ("-n", "--numprocesses", "-p", "--pdb", "--trace", "--kube")


def main(arguments: list[str]) -> int:
    """Run pytest and return its exit code."""
    signal.signal(signal.SIGTERM, _leave)
    workers = [] if any(word.startswith(_OWN_WORKERS) for word in arguments) else ["-n", "2", "--dist", "loadgroup"]
    pytest = [sys.executable, "-m", "pytest", "-p", "tests.skips", *workers, *arguments]
    with database() as url:
        env = SETTINGS | os.environ | {"DATABASE_URL": url}
        process = subprocess.Popen(tied(pytest, death_signal=signal.SIGTERM), cwd=ROOT, env=env)
        try:
            return process.wait()
        except KeyboardInterrupt:  # pytest got it from the terminal as well and sums up
            return process.wait()


@contextmanager
def database() -> Iterator[str]:
    """Yield the URL of a server for tests: the one of DATABASE_URL, else one of our own that lives as long."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    with TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # root's server runs as nobody, who must be able to pass
        with Postgres(Path(folder) / "postgres", durable=False) as postgres:
            yield postgres.url("muster")


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
