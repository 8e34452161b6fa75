"""Personal API tokens: shown once, kept as a digest, never deleted (the audit log names them)."""

from datetime import timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from portal.core import audit, clock
from portal.core.audit import Actor, Target
from portal.core.errors import DomainError, InvalidInputError
from portal.identity.models import ApiToken, User
from portal.identity.selectors import live_tokens

MAX_NAME = 80
MAX_DAYS = 365
MAX_LIVE = 50  # of one person


@transaction.atomic
def create_token(*, actor: Actor, user: User, name: str, days: int) -> tuple[ApiToken, str]:
    """Return a new token and its secret, which cannot be read again. Raise DomainError for a wrong name or life."""
    name = name.strip()
    _check(name, days)
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # so that parallel requests count each other
    if live_tokens(user).count() >= MAX_LIVE:
        text = _("You have {limit} tokens; revoke one first.").format(limit=MAX_LIVE)
        raise DomainError(text, code="too_many_tokens", numbers={"limit": MAX_LIVE})
    token, secret = ApiToken.objects.create(user, expiry=timedelta(days=days), name=name)
    after = {"name": name, "expires_at": token.expiry.isoformat()}
    audit.record(actor, "token.created", _target(token), after=after)
    return token, secret


@transaction.atomic
def revoke_token(*, actor: Actor, token: ApiToken) -> None:
    """Make a token useless from now on. Revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=clock.now()):
        audit.record(actor, "token.revoked", _target(token), before={"name": token.name})


def _check(name: str, days: int) -> None:
    problems: dict[str, list[str]] = {}
    if not 1 <= len(name) <= MAX_NAME:
        problems["name"] = [_("Give it a name of 1 to {limit} characters.").format(limit=MAX_NAME)]
    if not 1 <= days <= MAX_DAYS:
        problems["days"] = [_("A token lives 1 to {limit} days.").format(limit=MAX_DAYS)]
    if problems:
        raise InvalidInputError(problems)


def _target(token: ApiToken) -> Target:
    # Its visible start: the digest would be of no use to a reader, the secret of too much.
    return Target(type="token", id=token.token_key, label=token.name)
