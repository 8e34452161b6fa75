"""Take, check and give back a lease: a row with a token, not an advisory lock (poolers strand those)."""

from datetime import timedelta

from django.db.models import F, Q

from portal.core import clock
from portal.core.models import Lease

# How far the clocks of two hosts may be apart.
SKEW = timedelta(seconds=60)


def take(name: str, *, holder: str, ttl_s: float) -> int | None:
    """Return a token that is larger than all before it, or None while another holder's lease runs."""
    Lease.objects.get_or_create(name=name)
    now = clock.now()
    free = Q(expires_at__isnull=True) | Q(expires_at__lte=now)
    # Nobody takes a lease for so long: the clock was set back since. Its holder may still work, and its token is stale.
    free |= Q(expires_at__gt=now + timedelta(seconds=ttl_s) + SKEW)
    taken = Lease.objects.filter(free, name=name).update(
        token=F("token") + 1, holder=holder, expires_at=now + timedelta(seconds=ttl_s)
    )
    if not taken:
        return None
    # Only the holder moves the token on while the lease runs; None here: it ran out before this line.
    return Lease.objects.filter(name=name, holder=holder).values_list("token", flat=True).first()


def hold_for_write(name: str, token: int) -> bool:
    """Lock the lease row until the end of the transaction; False when the token is stale.

    Call it first inside the transaction that applies a result: a later holder then waits for this write.
    """
    return Lease.objects.select_for_update(no_key=True).filter(name=name, token=token).exists()


def give_back(name: str, token: int) -> None:
    """End the lease early. A stale token changes nothing."""
    Lease.objects.filter(name=name, token=token).update(expires_at=None)
