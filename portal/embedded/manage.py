"""`./run manage`: Django's commands, with the settings of the environment or those of a demo that runs."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from portal.embedded.demo import DATABASE, ROOT, child_env
from portal.embedded.folder import DemoFolder
from portal.embedded.postgres import Postgres, PostgresError

# Any of these is an installation of its own, and no demo is looked for.
_OWN_SETTINGS = ("DATABASE_URL", "SECRET_KEY", "SECRET_KEY_FILE", "MUSTER_DEMO")
_DEFAULT = ROOT / ".muster" / "demo"


def main(arguments: list[str]) -> int:
    """Become the command. Return the exit code where there is nothing to become."""
    try:
        folder, words = _split(arguments)
        env = demo_env(DemoFolder(folder), os.environ) if folder else _default_env()
    except (PostgresError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return _become([sys.executable, str(ROOT / "manage.py"), *words], env)


def demo_env(folder: DemoFolder, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the processes of the demo that runs on this folder. Raise PostgresError: none does."""
    if "DATABASE_URL" in environ:  # that of a demo without a server of its own
        return child_env(folder)
    postgres = Postgres(folder.postgres)
    if not postgres.attach():
        raise PostgresError(f"No demo runs on {folder.path}: start it with ./run demo --data {folder.path}")
    return child_env(folder) | {"DATABASE_URL": postgres.url(DATABASE)}


def _become(command: list[str], env: dict[str, str]) -> NoReturn:
    os.execve(command[0], command, env)  # noqa: S606 -- no shell is wanted


def _default_env() -> dict[str, str]:
    own = dict(os.environ)
    if any(name in own for name in _OWN_SETTINGS):
        return own
    folder = DemoFolder(_DEFAULT)
    return demo_env(folder, own) if Postgres(folder.postgres).attach() else own


def _split(arguments: list[str]) -> tuple[Path | None, list[str]]:
    if not arguments or not arguments[0].startswith("--data"):
        return None, arguments
    name, has_value, value = arguments[0].partition("=")
    rest = arguments[1:]
    if not has_value and rest:
        value, rest = rest[0], rest[1:]
    if name != "--data" or not value:
        raise ValueError("usage: ./run manage [--data DIR] COMMAND [arguments]")
    return Path(value), rest
