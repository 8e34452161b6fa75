"""`./run bench NAME [options]`: one benchmark, one line of JSON, exit code 1 when it misses a target.

A benchmark is a module of this package, named like it with underscores: `run(args) -> dict` returns its results,
the numbers of its targets among them, and under "facts" what they depend on (sizes, seeds). It may have
`add_arguments(parser)`, and `targets(args)` where they depend on an option. Outside data come by `--data` or
MUSTER_DATA, never by a path in code.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import django
from django.db import connection

from tests.__main__ import SETTINGS, database
from tests.bench.facts import facts
from tests.bench.targets import COMPARE, NEEDS_DATABASE, NEEDS_SETTINGS, TARGETS, Target


def main(arguments: list[str]) -> int:
    """Run the benchmark named first and return the exit code."""
    if not arguments or arguments[0] not in TARGETS:
        print(f"usage: ./run bench NAME [options]; NAME is one of: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    name = arguments[0]
    with ExitStack() as stack:
        if name in NEEDS_DATABASE:
            _prepare_django(stack)
        if name in NEEDS_SETTINGS:
            _configure({})
        bench = import_module(f"tests.bench.{name.replace('-', '_')}")
        args = _parse(bench, name, arguments[1:])
        targets = bench.targets(args) if hasattr(bench, "targets") else TARGETS[name]
        report = judge(name, bench.run(args), targets)
    print(json.dumps(report))
    return 0 if report["ok"] else 1


def judge(name: str, results: dict[str, Any], targets: Sequence[Target]) -> dict[str, Any]:
    """Return the report of a benchmark: its results held against its targets."""
    measured = dict(results)
    about = facts() | measured.pop("facts", {})
    held = [_judged(target, measured.get(target.name)) for target in targets]
    ok = all(target["ok"] for target in held)
    return {"bench": name, "ok": ok, "targets": held, "results": measured, "facts": about}


def _judged(target: Target, value: float | None) -> dict[str, Any]:
    ok = value is not None and bool(COMPARE[target.op](value, target.limit))
    return {"name": target.name, "value": value, "op": target.op, "limit": target.limit, "ok": ok}


def _parse(bench: ModuleType, name: str, arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"./run bench {name}", description=bench.__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUSTER_DATA"), help="folder of outside data")
    if hasattr(bench, "add_arguments"):
        bench.add_arguments(parser)
    return parser.parse_args(arguments)


def _prepare_django(stack: ExitStack) -> None:
    _configure({"DATABASE_URL": stack.enter_context(database())})
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)  # never a portal's own database


def _configure(settings: dict[str, str]) -> None:
    for name, value in (SETTINGS | settings).items():
        os.environ.setdefault(name, value)
    django.setup()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
