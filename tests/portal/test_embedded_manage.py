"""`./run manage`: the settings of a demo that runs, or one line about what is missing."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.embedded.demo import DATABASE
from portal.embedded.folder import DemoFolder
from portal.embedded.postgres import Postgres

ROOT = Path(__file__).resolve().parents[2]
OWN = ("SECRET_KEY", "DATABASE_URL", "MUSTER_DEMO", "MUSTER_ENCRYPTION_KEYS", "DJANGO_SETTINGS_MODULE")
ASKED = "from django.conf import settings; print(settings.DATABASES['default']['NAME'], settings.SECRET_KEY)"


@pytest.fixture
def folder() -> Iterator[DemoFolder]:
    """The folder of a demo; root's PostgreSQL runs as nobody, who must be able to pass."""
    with tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield DemoFolder(Path(name))


def manage(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in OWN} | settings
    command = [sys.executable, "-m", "portal.embedded", "manage", *words]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_a_command_takes_the_settings_and_the_database_of_the_demo_that_runs_on_the_folder(folder: DemoFolder) -> None:
    with Postgres(folder.postgres, durable=False) as server:
        server.create_database(DATABASE)
        by_word = manage("--data", str(folder.path), "shell", "--no-imports", "-c", ASKED)
        shown = manage(f"--data={folder.path}", "showmigrations", "contenttypes")

    assert by_word.stdout.split() == [DATABASE, folder.keys()["secret_key"]], by_word.stderr
    assert "[ ] 0001_initial" in shown.stdout, shown.stderr


def test_a_folder_without_a_demo_is_named_with_the_way_to_start_one(folder: DemoFolder) -> None:
    done = manage("--data", str(folder.path), "check")

    assert done.returncode == 1
    assert done.stderr == f"No demo runs on {folder.path}: start it with ./run demo --data {folder.path}\n"


def test_an_option_without_its_folder_shows_the_usage() -> None:
    assert manage("--data").stderr == "usage: ./run manage [--data DIR] COMMAND [arguments]\n"


def test_settings_that_are_not_complete_are_one_line_and_no_traceback() -> None:
    done = manage("check", SECRET_KEY="of-an-installation-of-its-own")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("MUSTER_ENCRYPTION_KEYS must hold at least one Fernet key")
