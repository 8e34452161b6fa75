"""`./run lint`: every check that reads the code. All of them run; one that fails shows what it said."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Nobody listens there: no check needs a database, and one that asks is to be told so at once.
_NO_DATABASE = "postgres://muster@/%2Fnonexistent/muster"
_ENV = {"MUSTER_DEMO": "1", "DJANGO_SETTINGS_MODULE": "portal.settings", "DATABASE_URL": _NO_DATABASE}


@dataclass(frozen=True)
class Outcome:
    """What came of one check."""

    name: str
    seconds: float
    output: str
    ok: bool


def main() -> int:
    """Run all checks, two at a time, and return 1 if any failed."""
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = [_shown(outcome) for outcome in pool.map(_run, checks().items())]
    failed = [outcome.name for outcome in outcomes if not outcome.ok]
    print(f"lint: {len(outcomes)} checks in {time.monotonic() - began:.1f} s, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def checks() -> dict[str, list[str]]:
    """Return the command of each check by its name, the slowest first."""
    scripts = Path(sys.executable).parent
    manage = [sys.executable, "-W", "ignore::RuntimeWarning", "manage.py"]  # "no database": as intended
    templates = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("templates/**/*.html"))
    return {
        "mypy": [str(scripts / "mypy"), "."],
        "ruff format": [str(scripts / "ruff"), "format", "--check", "."],
        "ruff": [str(scripts / "ruff"), "check", "."],
        "import contracts": [str(scripts / "lint-imports"), "--no-logo"],
        "manage.py check": [*manage, "check"],
        "migrations": [*manage, "makemigrations", "--check", "--dry-run"],
        "templates": [str(scripts / "djade"), "--check", *(templates or ["--help"])],
    }


def _run(check: tuple[str, list[str]]) -> Outcome:
    name, command = check
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | _ENV, capture_output=True, text=True, check=False)
    return Outcome(name, time.monotonic() - began, done.stdout + done.stderr, done.returncode == 0)


def _shown(outcome: Outcome) -> Outcome:
    print(
        f"  {outcome.name} ".ljust(24, "."), "ok" if outcome.ok else "FAILED", f"({outcome.seconds:.1f} s)", flush=True
    )
    if not outcome.ok:
        print("\n".join(f"    {line}" for line in outcome.output.splitlines()), flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
