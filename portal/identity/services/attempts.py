"""A brake on guessing: so many tries per window, counted before the try, so that parallel ones count too."""

import hashlib
from datetime import timedelta

from django.db.models import F

from portal.core import clock
from portal.identity.models import AttemptCounter

WINDOW = timedelta(minutes=15)


def claim(*what: str, limit: int) -> bool:
    """Count one more try of `what`. Return whether it is within `limit` tries of the last quarter of an hour."""
    now, key = clock.now(), _key(what)
    AttemptCounter.objects.filter(since__lte=now - WINDOW).delete()
    AttemptCounter.objects.get_or_create(key=key, defaults={"since": now})
    return bool(AttemptCounter.objects.filter(key=key, count__lt=limit).update(count=F("count") + 1))


def forgive(*what: str) -> None:
    """Forget the tries of `what`, after one that was right."""
    AttemptCounter.objects.filter(key=_key(what)).delete()


def _key(what: tuple[str, ...]) -> str:
    return hashlib.sha256("\x00".join(what).casefold().encode(errors="surrogatepass")).hexdigest()
