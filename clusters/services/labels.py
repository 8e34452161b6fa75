"""Which texts Kubernetes takes as keys and values of labels, and as names of resources."""

import re

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def is_label_key(text: str) -> bool:
    """Return whether this can be the key of a label or the name of a resource: an optional DNS prefix, a name."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(name))


def is_label_value(text: str) -> bool:
    """Return whether this can be the value of a label that tells nodes apart; an empty one cannot."""
    return bool(_NAME.fullmatch(text))
