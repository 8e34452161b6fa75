"""The embedded PostgreSQL: real servers in temporary folders, as root and as an ordinary user."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import environ
import psycopg
import pytest

from portal.embedded import postgres as module
from portal.embedded.measure import ProcessId, living, process_tree
from portal.embedded.postgres import Postgres, PostgresError, find_binaries

ROOT = Path(__file__).resolve().parents[2]
STRANGER = pwd.getpwnam("daemon").pw_uid  # an ordinary user that every system has; initdb asks for a name
IS_ROOT = os.geteuid() == 0
Copy = Callable[[Path], Path]
# Starts a server, tells its process id and sleeps: the parent that the tests kill.
PARENT = """
import sys, time
from pathlib import Path
from portal.embedded.postgres import Postgres
server = Postgres(Path(sys.argv[1]), durable=False)
server.start()
server.create_database("muster")
print(server.dsn("muster"), flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may pass; pytest's own are closed to all but their owner."""
    with tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A data folder made once, of which the tests start copies."""
    with tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        with Postgres(Path(name) / "data", durable=False) as server:
            server.create_database("muster")
        yield Path(name) / "data"


@pytest.fixture
def copy(template: Path) -> Copy:
    return partial(shutil.copytree, template)


@pytest.fixture
def data(folder: Path, copy: Copy) -> Path:
    return copy(folder / "data")


def answer(dsn: str, query: str = "SELECT current_user") -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    return row and row[0]


def wait_until_gone(processes: set[ProcessId], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while left := living(processes):
        if time.monotonic() > deadline:
            return not left
        time.sleep(0.05)
    return True


def test_a_server_answers_over_its_socket_and_listens_on_no_tcp_address(folder: Path) -> None:
    with Postgres(folder / "data", durable=False) as server:
        server.create_database("muster")
        server.create_database("muster")  # a second time is no error

        assert answer(server.dsn("muster")) == "muster"
        assert answer(server.dsn("muster"), "SHOW listen_addresses") == ""


def test_the_url_means_the_same_server_to_django(folder: Path, copy: Copy) -> None:
    with Postgres(copy(folder / "Data Ünï+%x"), durable=False) as server:
        server.create_database("muster")
        parsed = environ.Env.db_url_config(server.url("muster"))

        assert parsed["HOST"] == str(folder / "Data Ünï+%x")
        assert answer(psycopg.conninfo.make_conninfo(host=parsed["HOST"], dbname=parsed["NAME"], user=parsed["USER"]))


def test_data_survive_a_stop_and_a_start(data: Path) -> None:
    with Postgres(data) as server, psycopg.connect(server.dsn("postgres")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 37 AS value")
    with Postgres(data) as server:
        assert answer(server.dsn("postgres"), "SELECT value FROM kept") == 37


@pytest.mark.parametrize("name", ["x" * 100, "a,b"], ids=["too long for a socket", "a comma"])
def test_a_folder_that_cannot_hold_a_socket_gets_one_elsewhere(folder: Path, copy: Copy, name: str) -> None:
    with Postgres(copy(folder / name), durable=False) as server:
        socket_dir = Path(environ.Env.db_url_config(server.url("postgres"))["HOST"])
        assert answer(server.dsn("postgres")) == "muster"
        assert socket_dir.stat().st_mode & 0o777 == 0o700
    assert not socket_dir.exists()


def test_a_folder_in_use_is_refused_with_the_process_that_uses_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_USE_PATIENCE_S", 0.2)
    with Postgres(data, durable=False) as server:
        pid = (data / "postmaster.pid").read_text().split()[0]
        with pytest.raises(PostgresError, match=f"in use by the PostgreSQL server with process id {pid}"):
            Postgres(data).start()
        assert answer(server.dsn("postgres")) == "muster"


@pytest.mark.parametrize("pid", [2**22 - 1, os.getpid()], ids=["dead", "a stranger's"])
def test_a_leftover_pid_file_does_not_stop_a_start(data: Path, pid: int) -> None:
    (data / "postmaster.pid").write_text(f"{pid}\n{data}\n1\n5432\n\n\n\nready\n")

    with Postgres(data, durable=False) as server:
        assert answer(server.dsn("postgres")) == "muster"


def test_a_kill_9_of_the_parent_takes_the_server_along_and_the_data_stay_good(data: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        dsn = parent.stdout.readline()
        tree = process_tree(parent.pid)
        assert len(tree) > 5  # the server and its helpers
        assert answer(dsn) == "muster"
        parent.send_signal(signal.SIGKILL)

    assert wait_until_gone(tree)
    with Postgres(data, durable=False) as server:
        assert answer(server.dsn("muster")) == "muster"


def test_data_of_another_version_are_refused_with_both_versions(data: Path) -> None:
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresError, match=r"was made by PostgreSQL 9, but .* is version \d\d"):
        Postgres(data, durable=False).start()


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "thesis.tex").write_text("precious")
    with pytest.raises(PostgresError, match="holds files, but no PostgreSQL data"):
        Postgres(folder / "data", durable=False).start()
    assert [path.name for path in (folder / "data").iterdir()] == ["thesis.tex"]


def test_an_override_without_binaries_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_POSTGRES_BIN", str(folder))
    with pytest.raises(PostgresError, match=f"MUSTER_POSTGRES_BIN is {folder}"):
        find_binaries()


def test_variables_of_another_server_do_not_bend_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6000")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")
    with Postgres(folder / "data", durable=False) as server:
        server.create_database("muster")
    assert (folder / "data" / "PG_VERSION").exists()


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")
def test_root_gives_away_the_data_folder_and_nothing_above_it(folder: Path, copy: Copy) -> None:
    with Postgres(copy(folder / "deep" / "data"), durable=False):
        assert (folder / "deep" / "data").stat().st_uid != 0
        assert [path.stat().st_uid for path in (folder / "deep", folder)] == [0, 0]
        assert folder.stat().st_mode & 0o777 == 0o711


@pytest.mark.skipif(not IS_ROOT, reason="only root gives files away")
def test_root_below_a_closed_folder_keeps_its_files_and_the_folder_closed(folder: Path, copy: Copy) -> None:
    folder.chmod(0o700)
    if subprocess.run(["unshare", "--user", "--map-user=65534", "true"], check=False, capture_output=True).returncode:
        with pytest.raises(PostgresError, match="run as an ordinary user"):
            Postgres(copy(folder / "data"), durable=False).start()
        return
    with Postgres(copy(folder / "data"), durable=False) as server:
        assert answer(server.dsn("postgres")) == "muster"
    assert (folder / "data").stat().st_uid == 0
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not IS_ROOT, reason="only root can become another user")
def test_an_ordinary_user_runs_the_server_as_itself(folder: Path) -> None:
    folder.chmod(0o777)
    become = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "--"]
    python = interpreter_for(become)
    with subprocess.Popen(
        [*become, python, "-c", PARENT, str(folder / "data")],
        cwd=ROOT,
        env=os.environ | {"MUSTER_POSTGRES_BIN": str(find_binaries())},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        assert answer(parent.stdout.readline()) == "muster"
        tree = process_tree(parent.pid)
        parent.kill()
    assert wait_until_gone(tree)
    assert (folder / "data").stat().st_uid == STRANGER


def interpreter_for(become: list[str]) -> str:
    """Return a Python that this user can run with our package, or skip."""
    check = "import sys, portal.embedded.postgres; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            if (
                subprocess.run([*become, python, "-c", check], cwd=ROOT, check=False, capture_output=True).returncode
                == 0
            ):
                return python
        except OSError:
            continue
    pytest.skip("no Python that another user may run")
