"""Amounts as people read them: a number, its unit, and no more digits than matter."""

from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _

MINUTE, HOUR, DAY = 60, 3600, 86400
BYTES_PER = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def duration_text(value: timedelta | float) -> str:
    """Return a length of time (a timedelta, or seconds) in its two largest units: "41 s", "2 h 10 m"."""
    total = value.total_seconds() if isinstance(value, timedelta) else value
    seconds = max(0, round(total))
    if seconds < MINUTE:
        return _("%(seconds)d s") % {"seconds": seconds}
    if seconds < HOUR:
        return _("%(minutes)d m") % {"minutes": seconds // MINUTE}
    if seconds < DAY:
        return _("%(hours)d h %(minutes)02d m") % {
            "hours": seconds // HOUR,
            "minutes": seconds % HOUR // MINUTE,
        }
    return _("%(days)d d %(hours)d h") % {"days": seconds // DAY, "hours": seconds % DAY // HOUR}


def age_text(since: datetime, now: datetime) -> str:
    """Return how long ago a moment was; one in the future counts as now."""
    return duration_text(now - since)


def gib_text(amount: float, unit: str = "B") -> str:
    """Return memory, given in `unit` (B, KiB, MiB, GiB), in GiB. Raise KeyError for another unit."""
    gib = amount * BYTES_PER[unit] / BYTES_PER["GiB"]
    is_whole = gib >= 10 or gib == int(gib)  # from ten on a tenth no longer matters
    return _("%(amount)s GiB") % {"amount": number_format(gib, 0 if is_whole else 1)}


def money_text(cents: int) -> str:
    """Return hundredths of the installation's currency as an amount of it."""
    return f"{number_format(Decimal(cents) / 100, 2, force_grouping=True)} {settings.MUSTER_CURRENCY}"
