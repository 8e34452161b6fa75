"""What must hold before the portal may be given work."""

from collections.abc import Callable, Mapping

from celery import current_app
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError
from kombu.exceptions import OperationalError

from portal.core.heartbeat import stale_processes

# Seconds that the broker may take to accept a connection.
BROKER_TIMEOUT_S = 2


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
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_S)
    except (OperationalError, OSError):
        return "unreachable"
    return ""


def _processes() -> str:
    try:
        silent = stale_processes()
    except DatabaseError:
        return "unknown"
    return f"not heard of: {', '.join(silent)}" if silent else ""


CHECKS: Mapping[str, Callable[[], str]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "processes": _processes,
}
