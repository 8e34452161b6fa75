"""The demo's data folder: who holds it, its secrets, and the ports that a second start uses again."""

import base64
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import time
from pathlib import Path
from typing import TypedDict

_OURS = (
    "postgres",
    "postgres.new",
    "logs",
    "fleets",
    "clusters",
    "demo.json",
    "kube.json",
    "kube.yaml",
    "demo-logins.json",
    "beat-schedule",
    "secrets.json",
)
_PORT_PATIENCE_S = 3.0  # the clusters of a killed demo need a moment to go


class FolderError(Exception):
    """The folder cannot be used; the message says why and what to do."""


class ClusterEntry(TypedDict):
    """One simulated cluster of the demo, as `seed_demo --clusters` reads it."""

    name: str
    port: int
    server: str
    token: str
    fleet: str
    state: str


class Keys(TypedDict):
    """Keys made for this folder alone."""

    secret_key: str
    encryption_key: str


class DemoFolder:
    """A folder that one demo at a time holds, from `claim` until its process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.postgres = self.path / "postgres"
        self.logs = self.path / "logs"
        self._fleets = self.path / "fleets"
        self._states = self.path / "clusters"
        self.clusters_file = self.path / "demo.json"
        self.kube_file = self.path / "kube.json"
        self.logins_file = self.path / "demo-logins.json"
        self.beat_schedule = self.path / "beat-schedule"
        self._lock: int | None = None

    def claim(self) -> None:
        """Take the folder. Raise FolderError if another demo has it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Not inherited by children, so the kernel frees it with this process, however that ends.
            self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FolderError(
                f"Another demo runs on {self.path}: stop it (Ctrl-C there), or give this one --data DIR."
            ) from error
        except OSError as error:
            raise FolderError(
                f"{self.path} cannot be used: {error.strerror}. Give another folder with --data."
            ) from error

    def clear(self) -> None:
        """Remove what a demo wrote here, and nothing else: the folder may be anybody's."""
        for name in _OURS:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def turn_logs(self) -> None:
        """Begin new logs and keep the last ones. Nobody else may read them: the seed's tells passwords."""
        self.logs.mkdir(mode=0o700, exist_ok=True)
        for log in self.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.old"))

    def keys(self) -> Keys:
        """Return this installation's keys, made at the first start."""
        path = self.path / "secrets.json"
        if not path.exists():
            encryption_key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()  # the form of a Fernet key
            made = Keys(secret_key=secrets.token_urlsafe(50), encryption_key=encryption_key)
            write_private(path, json.dumps(made))
        kept: Keys = json.loads(path.read_text())
        return kept

    def cluster_entries(self, names: tuple[str, ...]) -> list[ClusterEntry]:
        """Return the simulated clusters with ports that are free: those of the last start where possible."""
        self._fleets.mkdir(exist_ok=True)
        self._states.mkdir(exist_ok=True)
        known = {entry["name"]: entry for entry in self._known_clusters()}
        entries = [self._entry(name, known.get(name)) for name in names]
        write_private(self.clusters_file, json.dumps({"clusters": entries}, indent=2))
        return entries

    def _known_clusters(self) -> list[ClusterEntry]:
        with contextlib.suppress(OSError, ValueError, KeyError):
            known: list[ClusterEntry] = json.loads(self.clusters_file.read_text())["clusters"]
            return known
        return []

    def _entry(self, name: str, known: ClusterEntry | None) -> ClusterEntry:
        port = known["port"] if known and _waits_to_be_free(known["port"]) else free_port()
        return ClusterEntry(
            name=name,
            port=port,
            server=f"http://127.0.0.1:{port}",
            token=known["token"] if known else secrets.token_urlsafe(32),
            fleet=str(self._fleets / f"{name}.json"),
            state=str(self._states / f"{name}.json"),
        )


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_port_free(port: int) -> bool:
    """Whether a server may listen on this port of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: closed connections linger
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _waits_to_be_free(port: int) -> bool:
    deadline = time.monotonic() + _PORT_PATIENCE_S
    while not is_port_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
