"""The parts of the smoke run that can be wrong by themselves."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.embedded import smoke
from portal.embedded.measure import cpu_percent, living, marked, process_tree, pss_mb
from portal.embedded.smoke import Report

ROOT = Path(__file__).resolve().parents[2]


def test_the_line_has_its_keys_and_a_demo_that_cannot_start_is_no_success() -> None:
    env = os.environ | {"MUSTER_POSTGRES_BIN": "/nonexistent"}
    env.pop("DATABASE_URL", None)
    command = [sys.executable, "-m", "portal.embedded", "smoke"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    (line,) = done.stdout.splitlines()
    assert list(json.loads(line)) == [
        "ok",
        "ready_s",
        "training_s",
        "inference_s",
        "gpu_samples",
        "pss_mb",
        "idle_cpu_pct",
        "leftover_processes",
    ]
    assert json.loads(line)["ok"] is False
    assert done.returncode == 1
    assert "MUSTER_POSTGRES_BIN is /nonexistent" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [("ready_s", 60.1), ("pss_mb", 1200.1), ("idle_cpu_pct", 15.1), ("leftover_processes", 1)],
)
def test_each_limit_is_named_when_it_is_missed(name: str, value: float) -> None:
    report = Report(ready_s=60, pss_mb=1200, idle_cpu_pct=15, leftover_processes=0)
    assert smoke.missed_limits(report) == []
    setattr(report, name, value)
    (problem,) = smoke.missed_limits(report)
    assert problem.startswith(f"{name} is {value}, the limit ")


def test_samples_are_counted_and_gaps_are_not() -> None:
    figure = {"data": [{"x": [1, 2, 3], "y": [0, None, 2.5]}, {"x": [1], "y": [7]}], "layout": {"width": 3}}
    assert smoke.count_samples({"charts": [figure], "scrape_s": 2}) == 3
    assert smoke.count_samples({"charts": []}) == 0


def test_a_process_is_found_by_its_mark_and_is_gone_when_it_is_a_zombie(tmp_path: Path) -> None:
    mark = f"MUSTER_TEST={tmp_path}"
    child = subprocess.Popen(["sleep", "60"], env={"MUSTER_TEST": str(tmp_path)})
    found = marked(mark)
    assert [process.pid for process in found] == [child.pid]
    assert found < process_tree(os.getpid())

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped

    assert not living(found)
    assert not marked(mark)
    child.wait()


def test_memory_and_processor_time_of_a_tree_are_measured() -> None:
    code = "block = bytearray(50_000_000)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        time.sleep(1)
        busy = cpu_percent(child.pid, over_s=0.5)
        memory = pss_mb(process_tree(child.pid))
        child.kill()
    assert 10 < busy < 150  # the machine may be busy with other things
    assert 50 < memory < 100
