"""Secrets at rest, under keys of their own."""

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def encrypt(text: str) -> str:
    """Encrypt under the newest key."""
    return _box().encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    """Decrypt with whichever key fits. Raise cryptography.fernet.InvalidToken when none does."""
    return _box().decrypt(text.encode()).decode()


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]  # not subscriptable at run time
    """Text that is stored encrypted; an empty string stays empty. It cannot be filtered on."""

    def from_db_value(self, value: str | None, _expression: object, _connection: BaseDatabaseWrapper) -> str | None:
        """Decrypt on the way out."""
        return decrypt(value) if value else value

    def get_prep_value(self, value: str | None) -> str | None:
        """Encrypt on the way in."""
        return encrypt(value) if value else value
