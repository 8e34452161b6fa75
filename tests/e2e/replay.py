"""`python -m tests.e2e.replay [FILE ...]`: replay traces on 32 nodes of 8 GPUs, one line of JSON for each.

Without a file the two published traces of the folder that MUSTER_DATA names are replayed, each at a pace that
takes about five minutes. Options (`--jobs 500 --speed 600 --min-run 2 --max-run 120`) go to `manage.py replay_trace`.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg

from clusters.simulated.fleet import uniform
from tests.e2e.portal import DATABASE, ROOT, RunningPortal, running_portal

NODES, GPUS = 32, 8
# The first 500 jobs of the one came within 31 hours, those of the other within 18 days.
TRACES = {"philly/philly_2017-10.csv.gz": "600", "philly-vc-gangs/vc_trace2.csv.gz": "6000"}


def main(arguments: Sequence[str]) -> int:
    """Return 0 only if all replays held."""
    files = [word for word in arguments if word.endswith((".csv", ".gz"))]
    options = [word for word in arguments if word not in files]
    runs = [(file, options) for file in files] or [(file, ["--speed", speed, *options]) for file, speed in published()]
    if not runs:
        sys.stderr.write("replay: name a trace, or let MUSTER_DATA name the folder of the published ones\n")
        return 2
    # One portal for each: the second trace finds no row of the first.
    return max(_replay(file, given) for file, given in runs)


def published() -> list[tuple[str, str]]:
    """The two traces with their speeds, where they are."""
    folder = os.environ.get("MUSTER_DATA")
    found = [(Path(folder, name), speed) for name, speed in TRACES.items()] if folder else []
    return [(str(path), speed) for path, speed in found if path.exists()]


def _replay(file: str, options: Sequence[str]) -> int:
    with running_portal({"north": uniform(nodes=NODES, gpus=GPUS)}, clock=1) as portal:
        _give_all(portal)
        command = [sys.executable, str(ROOT / "manage.py"), "replay_trace", file, *options]
        return subprocess.run(command, cwd=ROOT, env=portal.env(), check=False).returncode


def _give_all(portal: RunningPortal) -> None:
    """Quota is not what these traces are about."""
    with psycopg.connect(portal.postgres.dsn(DATABASE)) as connection:
        connection.execute("UPDATE quotas_quota SET nominal = %s", [NODES * GPUS])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
