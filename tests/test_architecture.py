"""What import contracts cannot see."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app
from django.apps import apps

from portal.core.enqueue import LOOPS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("portal", "clusters", "quotas", "jobs")
FLOORS = {"core": 0, "identity": 1, "clusters": 2, "quotas": 3, "jobs": 4}
MOST_LINES = 500
# What the scheduler may import: the standard library's plain tools, and NumPy.
SCHEDULER_MAY = {"collections", "dataclasses", "enum", "functools", "itertools", "typing", "numpy", "jobs"}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_no_foreign_key_climbs_a_floor() -> None:
    # A foreign key by name escapes every import contract.
    climbing = [
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.is_relation and field.concrete and field.related_model
        for mine, theirs in [(model._meta.app_label, field.related_model._meta.app_label)]
        if mine in FLOORS and FLOORS.get(theirs, 0) > FLOORS[mine]
    ]
    assert climbing == []


@pytest.mark.parametrize("name", LOOPS)
def test_every_task_that_is_sent_by_name_exists(name: str) -> None:
    current_app.loader.import_default_modules()
    assert name in current_app.tasks


def test_every_looping_task_has_a_queue_of_its_own_that_a_worker_reads() -> None:
    queues = [queue.name for queue in current_app.conf.task_queues]
    assert set(LOOPS.values()) <= set(queues)
    assert len(set(LOOPS.values())) == len(LOOPS)
    assert {entry["task"] for entry in current_app.conf.beat_schedule.values()} <= set(LOOPS)
    assert " -Q " not in (ROOT / "docs/operator.md").read_text()  # a list there would miss the next one


def test_the_scheduler_imports_plain_tools_alone() -> None:
    strange = {
        f"{path.name}: {name}"
        for path in sources("jobs/scheduler")
        for name in imported(path)
        if name.split(".")[0] not in SCHEDULER_MAY or (name.startswith("jobs") and "scheduler" not in name)
    }
    assert strange == set()


def test_only_transitions_writes_the_state_of_a_job() -> None:
    writers = {
        str(path.relative_to(ROOT))
        for path in sources("jobs", "portal")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update"
        if any(word.arg == "state" for word in node.keywords)
    }
    assert writers == {"jobs/transitions.py"}


def test_no_source_file_is_longer_than_500_lines() -> None:
    long = {str(path.relative_to(ROOT)) for path in sources(*PACKAGES, "tests") if _lines(path) > MOST_LINES}
    assert long == set()


def test_no_model_does_work_in_save() -> None:
    savers = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources(*PACKAGES)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name in ("save", "delete") and "models" in path.parts
    ]
    assert savers == []


def test_the_pages_never_load_the_kubernetes_client() -> None:
    code = "import django; django.setup(); import portal.urls, sys; sys.exit('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())
