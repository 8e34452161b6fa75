"""What every row of ours shares."""

import secrets

from django.db import models

# Lower-case letters and digits without those that are read wrongly (0 o, 1 l i): fit for DNS names and reading aloud.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
UID_LENGTH = 12


def new_uid() -> str:
    """Return a fresh public identifier: 12 characters, about 59 bits, valid inside a DNS label.

    It always starts with a letter, since YAML reads some strings of digits as numbers.
    """
    first = secrets.choice(_ALPHABET[8:])
    return first + "".join(secrets.choice(_ALPHABET) for _ in range(UID_LENGTH - 1))


class TimestampedModel(models.Model):
    """A row that knows when it was made and when it last changed through the ORM's own save."""

    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
