"""Run an act once per key: a repeated request gets the first answer again."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from portal.core import clock
from portal.core.errors import DomainError
from portal.core.models import IdempotencyRecord

MAX_KEY = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and JSON body of an answer; `is_repeated` when it is that of an earlier request."""

    status: int
    body: Any
    is_repeated: bool = False


class IdempotencyKeyError(DomainError):
    """The key is empty, too long, or not plain text."""

    code = "invalid_idempotency_key"
    status = 400
    default_message = _("An idempotency key has 1 to 200 printable ASCII characters.")

    def __init__(self) -> None:
        super().__init__(field="Idempotency-Key", numbers={"limit": MAX_KEY})


class IdempotencyMismatchError(DomainError):
    """The key was used for another request."""

    code = "idempotency_mismatch"
    default_message = _("This key was used for another request; use a new key for a new request.")

    def __init__(self) -> None:
        super().__init__(field="Idempotency-Key")


def run_once(user_id: int, key: str, digest: str, action: Callable[[], Answer]) -> Answer:
    """Return what `action` answers, or the stored answer when the key was used for the same request before.

    `digest` identifies the request. The key's row is written first, in one transaction with the act: whoever comes
    second waits on the unique index, and finds the answer, or runs the act itself if the first one failed.
    So the act must be short and must not wait for a network. Raise IdempotencyKeyError, IdempotencyMismatchError.
    """
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise IdempotencyKeyError
    with transaction.atomic():
        record, is_new = IdempotencyRecord.objects.get_or_create(
            user_id=user_id, key=key, defaults={"request_digest": digest, "created_at": clock.now()}
        )
        if not is_new:
            return _repeat(record, digest)
        answer = action()
        IdempotencyRecord.objects.filter(pk=record.pk).update(status=answer.status, answer=answer.body)
        return answer


def digest_of(*parts: bytes) -> str:
    """Return a digest that tells requests apart, for example by method, path and body."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _repeat(record: IdempotencyRecord, digest: str) -> Answer:
    if record.request_digest != digest:
        raise IdempotencyMismatchError
    return Answer(status=record.status or 200, body=record.answer, is_repeated=True)
