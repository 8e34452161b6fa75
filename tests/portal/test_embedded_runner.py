"""How tests and benches are run: skips on a build machine, limits of a bench, exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench.targets import Target

ROOT = Path(__file__).resolve().parents[2]
SKIPS = """
import pytest

def test_passes():
    pass

def test_needs_traces():
    pytest.skip("needs outside traces: set MUSTER_DATA")

@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    assert False
"""
ONE_MORE = """
def test_nobody_allowed_this():
    pytest.skip("I was in a hurry")
"""


def run_pytest(folder: Path, code: str, *, ci: bool, workers: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_probe.py").write_text(code)
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "xdist.plugin", "-p", "tests.skips", "-p", "no:cacheprovider", "-n", workers, "-q", "-rN"]
    # The other plugins take seconds to load.
    env = os.environ | {"PYTHONPATH": str(ROOT), "CI": "true" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_skip_that_nobody_allowed_fails_the_build(tmp_path: Path, workers: str) -> None:
    done = run_pytest(tmp_path, SKIPS + ONE_MORE, ci=True, workers=workers)
    assert done.returncode == 1
    assert "test_nobody_allowed_this: I was in a hurry" in done.stdout
    assert "test_needs_traces: " not in done.stdout
    assert "1 passed, 2 skipped, 1 xfailed" in done.stdout.splitlines()[-1]


def test_allowed_skips_and_expected_failures_pass_the_build(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, SKIPS, ci=True, workers="0").returncode == 0


def test_any_skip_passes_at_home(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, SKIPS + ONE_MORE, ci=False, workers="0").returncode == 0


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_module_skipped_as_a_whole_fails_the_build(tmp_path: Path, workers: str) -> None:
    code = "import pytest\npytest.skip('no such library', allow_module_level=True)\n"
    done = run_pytest(tmp_path, code, ci=True, workers=workers)
    assert "test_probe.py: no such library" in done.stdout
    assert done.returncode != 0


def test_a_bench_meets_its_targets_only_with_every_number() -> None:
    targets = (Target("ms", "<=", 60), Target("speedup", ">=", 20))
    good = bench.judge("probe", {"ms": 60.0, "speedup": 20, "facts": {"seed": 7}}, targets)
    assert good["ok"]
    assert good["facts"]["seed"] == 7
    assert good["results"] == {"ms": 60.0, "speedup": 20}
    assert not bench.judge("probe", {"ms": 60.1, "speedup": 20}, targets)["ok"]
    assert not bench.judge("probe", {"ms": 1.0}, targets)["ok"]


def test_an_unknown_bench_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["no-such"]) == 2
    assert "cycle-nodes, pages" in capsys.readouterr().err
