"""Streams live for hours; a connection to the database must not wait with them."""

from django.db import connections


def give_back() -> None:
    """Close this thread's connections, except one that is in the middle of a transaction."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
