"""What must hold before the portal may be given work."""

from collections.abc import Callable, Mapping

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError

from portal.core.enqueue import is_broker_reachable
from portal.core.heartbeat import stale_processes


def failures() -> Mapping[str, str]:
    """Return what is wrong, by part; empty when all is well."""
    return {name: problem for name, check in CHECKS.items() if (problem := check())}


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return ""


def _migrations() -> str:
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return "unknown"
    return f"{len(waiting)} not applied" if waiting else ""


def _broker() -> str:
    return "" if is_broker_reachable() else "unreachable"


def _processes() -> str:
    try:
        silent = stale_processes()
    except DatabaseError:
        return "unknown"
    return f"not heard from: {', '.join(silent)}" if silent else ""


CHECKS: Mapping[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "processes": _processes,
}
