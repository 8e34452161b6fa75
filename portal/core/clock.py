"""The one clock. Code that needs the time asks here, so that a test can set it."""

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """Return the current time, aware, in UTC."""
    return timezone.now()
