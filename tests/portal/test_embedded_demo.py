"""The demo's folder, its refusals and its environment; the whole demo runs in `./run smoke`."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from portal.embedded import demo, folder
from portal.embedded.demo import child_env, is_answering, keep_logins
from portal.embedded.folder import DemoFolder, FolderError, free_port, is_port_free, write_private

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def claimed(tmp_path: Path) -> DemoFolder:
    made = DemoFolder(tmp_path / "demo")
    made.claim()
    return made


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "portal.embedded", "demo", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)


def test_a_port_in_use_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = run_demo("--data", str(tmp_path / "demo"), "--port", str(port))
    assert done.returncode == 1
    assert f"Port {port} is in use: give another one with --port N" in done.stdout
    assert not (tmp_path / "demo" / "postgres").exists()


def test_a_second_demo_on_one_folder_is_refused(claimed: DemoFolder) -> None:
    done = run_demo("--data", str(claimed.path), "--port", "0", "--fresh")
    assert done.returncode == 1
    assert f"Another demo runs on {claimed.path}" in done.stdout


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be used: Not a directory"):
        DemoFolder(tmp_path / "file" / "demo").claim()


def test_a_control_plane_that_cannot_be_had_ends_the_demo_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    done = run_demo("--kube", "--data", str(tmp_path / "demo"), "--port", "0")

    assert done.returncode == 1
    assert f"KUBEBUILDER_ASSETS names {tmp_path}, which lacks etcd" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_fresh_removes_what_a_demo_wrote_and_nothing_else(claimed: DemoFolder) -> None:
    (claimed.path / "thesis.tex").write_text("precious")
    (claimed.path / "postgres").mkdir()
    first = claimed.keys()
    claimed.cluster_entries(("north",))

    claimed.clear()

    assert sorted(path.name for path in claimed.path.iterdir()) == ["lock", "thesis.tex"]
    assert claimed.keys() != first


def test_keys_are_made_once_fit_their_use_and_are_private(claimed: DemoFolder) -> None:
    keys = claimed.keys()
    assert claimed.keys() == keys
    assert len(keys["secret_key"]) >= 50
    Fernet(keys["encryption_key"])
    assert (claimed.path / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_a_second_start_uses_the_ports_and_tokens_of_the_first(claimed: DemoFolder) -> None:
    first = claimed.cluster_entries(("north", "south"))
    assert claimed.cluster_entries(("north", "south")) == first
    assert json.loads(claimed.clusters_file.read_text()) == {"clusters": first}
    assert claimed.clusters_file.stat().st_mode & 0o777 == 0o600


def test_a_port_that_somebody_took_is_replaced_and_its_token_kept(
    claimed: DemoFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "_PORT_PATIENCE_S", 0.1)
    (first,) = claimed.cluster_entries(("north",))
    with socket.create_server(("127.0.0.1", first["port"])):
        (second,) = claimed.cluster_entries(("north",))
    assert second["port"] != first["port"]
    assert second["server"] == f"http://127.0.0.1:{second['port']}"
    assert second["token"] == first["token"]


def test_a_torn_file_about_the_clusters_is_written_anew(claimed: DemoFolder) -> None:
    claimed.clusters_file.write_text('{"clusters": [{"na')
    assert [entry["name"] for entry in claimed.cluster_entries(("north",))] == ["north"]


def test_the_token_told_once_stays_and_passwords_are_private(tmp_path: Path) -> None:
    log, file = tmp_path / "seed.log", tmp_path / "logins.json"
    log.write_text('a warning\n{"logins": [{"user": "alice"}], "token": "muster_1"}\n')
    keep_logins(log, file)
    log.write_text('{"logins": [{"user": "alice"}, {"user": "bob"}]}\n')
    keep_logins(log, file)
    assert json.loads(file.read_text()) == {"logins": [{"user": "alice"}, {"user": "bob"}], "token": "muster_1"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_logs_are_private_and_the_last_ones_are_kept(claimed: DemoFolder) -> None:
    claimed.turn_logs()
    (claimed.logs / "web.log").write_text("first")
    claimed.turn_logs()
    assert (claimed.logs / "web.log.old").read_text() == "first"
    assert not (claimed.logs / "web.log").exists()
    assert claimed.logs.stat().st_mode & 0o777 == 0o700


def test_children_get_their_own_keys_and_no_variables_of_another_postgres(
    claimed: DemoFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PGPORT", "6000")
    env = child_env(claimed)
    assert env["SECRET_KEY"] == claimed.keys()["secret_key"]
    assert env["MUSTER_DEMO"] == "1"
    assert "PGPORT" not in env


def test_an_external_database_keeps_its_variables(claimed: DemoFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://portal@db/portal")
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    env = child_env(claimed)
    assert env["PGSSLMODE"] == "verify-full"
    assert env["DATABASE_URL"] == "postgres://portal@db/portal"


def test_the_demo_has_64_nodes() -> None:
    assert sum(demo.CLUSTERS.values()) == 64


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    code = "import http.server as h; h.HTTPServer(('127.0.0.1', {}), h.SimpleHTTPRequestHandler).serve_forever()"
    port = free_port()
    with subprocess.Popen([sys.executable, "-c", code.format(port)], stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 10
            while not is_answering(f"http://127.0.0.1:{port}/"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            server.terminate()
    assert not is_answering(f"http://127.0.0.1:{port}/")
    assert is_port_free(port)


def test_a_private_file_replaces_one_that_others_could_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
