"""Tell open pages that something changed: a NOTIFY with topic, id and version; the page reads again."""

import json
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

CHANNEL = "muster"


def publish(topic: str, identifier: str = "", version: int = 0) -> None:
    """Send after commit. Postgres holds a NOTIFY back until the transaction commits, and drops it on roll-back.

    The payload stays tiny on purpose (Postgres allows 8000 bytes) and carries no data that needs permission.
    """
    payload = json.dumps({"topic": topic, "id": identifier, "version": version}, separators=(",", ":"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, payload])


def stream_url(*topics: str) -> str:
    """Return the address of the stream that a page on these topics listens to."""
    return f"{reverse('live')}?{urlencode([('topic', topic) for topic in topics])}"
