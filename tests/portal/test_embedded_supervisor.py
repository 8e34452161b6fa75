"""The supervisor: real processes, with children of their own, under every way to end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.embedded import processes
from portal.embedded.demo import is_answering
from portal.embedded.folder import free_port
from portal.embedded.measure import ProcessId, living, marked, process_tree
from portal.embedded.supervisor import ProcessFailedError, Service, Supervisor

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = "import time; time.sleep(60)"
# Ends politely, but leaves a child behind when it is killed.
PARENT_OF_ONE = "import subprocess, sys; subprocess.run(['sleep', '60'])"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
CELERY_APP = "from celery import Celery\napp = Celery('probe', broker='memory://')\n"
ASGI_APP = """
import asyncio

async def application(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
"""
# What the tests kill: a supervisor of services given as JSON-like literals.
PARENT = """
import sys
from ast import literal_eval
from pathlib import Path
from portal.embedded.supervisor import Service, Supervisor
logs, env, commands = Path(sys.argv[1]), *map(literal_eval, sys.argv[2:4])
with Supervisor(logs=logs, env=env, cwd=logs, say=lambda line: print(line, flush=True), grace_s=2) as supervisor:
    for stage, (name, command) in enumerate(commands.items()):
        once = name == "once"
        supervisor.start(Service(name, tuple(command), stage=stage, stop_timeout_s=8, is_restarted=not once))
    print("started", flush=True)
    supervisor.keep()
print("stopped", flush=True)
"""
StartParent = Callable[[dict[str, tuple[str, ...]]], "subprocess.Popen[str]"]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    lines: list[str] = []
    with Supervisor(logs=tmp_path, env=dict(os.environ), cwd=tmp_path, say=lines.append) as made:
        yield made


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.fixture
def start_parent(tmp_path: Path) -> Iterator[StartParent]:
    """Starts a supervisor as a process of its own; none outlives the test."""
    parents: list[subprocess.Popen[str]] = []
    env = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
    env |= {"MUSTER_TEST": str(tmp_path), "PYTHONPATH": str(tmp_path)}

    def start(commands: dict[str, tuple[str, ...]]) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PARENT, str(tmp_path), repr(env), repr(commands)]
        parents.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        return parents[-1]

    yield start
    for parent in parents:
        with parent:
            parent.terminate()


def left_of(folder: Path) -> set[ProcessId]:
    return marked(f"MUSTER_TEST={folder}")


def finish(parent: subprocess.Popen[str]) -> str:
    output, _ = parent.communicate(timeout=30)
    return output


def test_a_kill_9_of_the_parent_leaves_no_process_however_stubborn(tmp_path: Path, start_parent: StartParent) -> None:
    commands = {"sleeper": python(SLEEPER), "family": python(PARENT_OF_ONE), "stubborn": python(STUBBORN)}
    parent = start_parent(commands)
    wait_for(lambda: len(left_of(tmp_path)) == 4)  # three services and one child of theirs
    tree = process_tree(parent.pid)

    parent.kill()
    finish(parent)

    wait_for(lambda: not left_of(tmp_path) and not living(tree), seconds=15)


@pytest.mark.slow
def test_a_kill_9_of_the_parent_takes_the_workers_of_celery_and_granian_along(
    tmp_path: Path, start_parent: StartParent
) -> None:
    (tmp_path / "probe_celery.py").write_text(CELERY_APP)
    (tmp_path / "probe_asgi.py").write_text(ASGI_APP)
    port = str(free_port())
    web = ("granian", "--interface", "asgi", "probe_asgi:application", "--port", port, "--workers-kill-timeout", "3")
    worker = ("celery", "-A", "probe_celery", "worker", "-c", "2", "--without-gossip", "--without-mingle")
    parent = start_parent({"web": (sys.executable, "-m", *web), "worker": (sys.executable, "-m", *worker)})
    wait_for(lambda: is_answering(f"http://127.0.0.1:{port}/"), seconds=60)
    wait_for(lambda: len(left_of(tmp_path)) == 5, seconds=60)  # granian and its worker, celery and its two

    parent.kill()
    finish(parent)

    wait_for(lambda: not left_of(tmp_path), seconds=20)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_stop_ends_the_later_stages_first_and_leaves_nothing(
    tmp_path: Path, start_parent: StartParent, number: signal.Signals
) -> None:
    note = "import signal, sys, time, pathlib\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    note += "try: time.sleep(60)\nfinally: pathlib.Path('order').open('a').write(sys.argv[1])\n"
    commands = {name: (*python(note), name) for name in "abc"}
    parent = start_parent(commands)
    wait_for(lambda: len(left_of(tmp_path)) == 3)
    time.sleep(0.3)  # until their handlers stand

    parent.send_signal(number)

    assert finish(parent).splitlines() == ["started", "stopped"]
    assert parent.returncode == 0
    assert (tmp_path / "order").read_text() == "cba"
    assert not left_of(tmp_path)


def test_a_service_that_does_not_stop_is_killed_after_its_time(tmp_path: Path) -> None:
    lines: list[str] = []
    with Supervisor(logs=tmp_path, env=dict(os.environ), cwd=tmp_path, say=lines.append) as supervisor:
        code = f"open('up', 'w').close(); {STUBBORN}"
        supervisor.start(Service("stubborn", python(code), stop_timeout_s=0.3))
        wait_for((tmp_path / "up").exists)
        time.sleep(0.3)
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert lines == ["stubborn did not stop in 0 s and is killed"]


def test_a_service_that_dies_is_started_again_and_its_orphans_are_ended(
    tmp_path: Path, start_parent: StartParent
) -> None:
    parent = start_parent({"family": python(PARENT_OF_ONE)})
    wait_for(lambda: len(left_of(tmp_path)) == 2)
    first = left_of(tmp_path)
    father = min(first, key=lambda process: process.pid)

    os.kill(father.pid, signal.SIGKILL)

    wait_for(lambda: len(left_of(tmp_path)) == 2 and not living(first))
    parent.terminate()
    assert "family was ended by SIGKILL; it is started again in 0.5 s" in finish(parent)
    assert not left_of(tmp_path)


def test_restarts_come_slower_and_slower(tmp_path: Path, start_parent: StartParent) -> None:
    parent = start_parent({"broken": python("raise SystemExit(3)")})
    time.sleep(3)
    parent.terminate()
    said = [line for line in finish(parent).splitlines() if line.startswith("broken ended with exit code 3")]
    assert [line.split(" in ")[1].split(" s ")[0] for line in said] == ["0.5", "1", "2"][: len(said)]
    assert len(said) >= 2


def test_a_service_that_cannot_come_back_as_it_was_is_told_of_once_and_let_go(
    tmp_path: Path, start_parent: StartParent
) -> None:
    parent = start_parent({"once": python("raise SystemExit(3)")})
    time.sleep(1.5)
    parent.terminate()

    output = finish(parent)
    assert output.count(f"once ended with exit code 3 (log: {tmp_path / 'once.log'})") == 1
    assert "started again" not in output


def test_a_step_that_fails_names_its_exit_code_and_its_log(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.begin("migrate", python("print('no such table'); raise SystemExit(3)"))
    with pytest.raises(ProcessFailedError, match="migrate ended with exit code 3") as caught:
        supervisor.finish("migrate", timeout_s=10)
    assert caught.value.log == tmp_path / "migrate.log"
    assert "no such table" in caught.value.log.read_text()


def test_a_wait_ends_when_a_service_dies(supervisor: Supervisor) -> None:
    supervisor.start(Service("web", python("raise SystemExit(1)")))
    with pytest.raises(ProcessFailedError, match="web ended with exit code 1"):
        supervisor.wait_until(lambda: False, what="the web", log=supervisor.log_of("web"), timeout_s=10)


def test_a_wait_has_an_end(supervisor: Supervisor) -> None:
    with pytest.raises(ProcessFailedError, match="waited 0 s in vain for the moon"):
        supervisor.wait_until(lambda: False, what="the moon", log=supervisor.log_of("moon"), timeout_s=0.1)


def test_processes_are_tied_to_us_without_setpriv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_setpriv(name: str, *arguments: Any) -> None:
        return None

    monkeypatch.setattr(shutil, "which", without_setpriv)
    read = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    child = processes.spawn(python(read), log=tmp_path / "log", env=dict(os.environ), death_signal=signal.SIGINT)
    assert child.wait(timeout=10) == 0
    assert (tmp_path / "log").read_text().strip() == str(int(signal.SIGINT))
