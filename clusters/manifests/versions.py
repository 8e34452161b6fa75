"""Which versions of Kubernetes can start gangs."""

import re

# The first with scheduling gates and pods whose affinity may change while they stand at one, for good.
OLDEST = (1, 30)
# The same for a database: 1.0 to 1.29, and whatever is before 1.
TOO_OLD = r"^v?(0\.|1\.[12]?[0-9]([^0-9]|$))"
_VERSION = re.compile(r"v?(\d+)\.(\d+)", re.ASCII)


def minor_of(text: str) -> tuple[int, int] | None:
    """Return the first two numbers of what a server says of itself; None when it says none."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None


def is_too_old(text: str) -> bool:
    """Return whether nothing may be placed on such a cluster. A version that is not known yet is none."""
    minor = minor_of(text)
    return minor is not None and minor < OLDEST
