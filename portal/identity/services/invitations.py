"""Links that let one address join a team, once, until they expire. Only their digests are kept."""

import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from smtplib import SMTPException

import structlog
from django.core.mail import send_mail
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from portal.core import audit, clock
from portal.core.audit import Actor, Target
from portal.core.errors import DomainError, InvalidInputError
from portal.identity.actors import as_actor
from portal.identity.models import Invitation, Membership, Team, User
from portal.identity.services.rows import check

LIFE = timedelta(days=7)
# For new accounts: letters of other scripts look like these and are not. Older accounts keep their names.
LONGEST_NAME = 40
NAME_RULE = _lazy("Letters a-z and A-Z, digits, “.”, “_” and “-”, at most 40 characters.")
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}")
log = structlog.get_logger(__name__)


class InvitationClosedError(DomainError):
    """The invitation was used, revoked, has expired, or never was: all look the same."""

    code = "invitation_closed"

    def __init__(self) -> None:
        super().__init__(_("This invitation is not open any more. Ask for a new one."))


@dataclass(frozen=True, slots=True)
class Invited:
    """A fresh invitation, the only copy of its link, and whether the mail left."""

    invitation: Invitation
    link: str
    is_mailed: bool


def invite(*, actor: Actor, team: Team, email: str, role: str, link_to: Callable[[str], str]) -> Invited:
    """Invite an address and mail it the link; an older open invitation of the address ends.

    `link_to` makes the link from the secret. Raise InvalidInputError for a wrong address or role, or a member's.
    """
    secret = secrets.token_urlsafe(32)
    invitation = _store(actor, team, email, role, digest_of(secret))
    link = link_to(secret)
    return Invited(invitation, link, is_mailed=_mail(invitation, link))


@transaction.atomic
def revoke_invitation(*, actor: Actor, invitation: Invitation) -> None:
    """End an open invitation. Revoking it again changes nothing."""
    if open_invitations().filter(pk=invitation.pk).update(revoked_at=clock.now()):
        audit.record(actor, "invitation.revoked", _target(invitation))


@transaction.atomic
def accept(*, user: User, digest: str) -> Team:
    """Put the person into the team of the invitation. Raise DomainError if it is closed or of another address."""
    invitation = _take(digest)
    if invitation.email.casefold() != user.email.casefold():
        raise DomainError(_("This invitation is for another address than yours."), code="invitation_of_another")
    _join(invitation, user)
    return invitation.team


@transaction.atomic
def register(*, digest: str, username: str, password: str) -> User:
    """Make an account for the invited address and put it into the team. Raise DomainError, or InvalidInputError."""
    invitation = _take(digest)
    if not _NAME.fullmatch(username):
        raise InvalidInputError({"username": [str(NAME_RULE)]}, code="bad_name")
    if User.objects.filter(username__iexact=username).exists():
        raise InvalidInputError({"username": [_("This name is taken.")]})
    user = User(username=username, email=invitation.email)
    user.set_password(password)
    check(user)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:  # somebody was faster with the same name
        raise InvalidInputError({"username": [_("This name is taken.")]}) from error
    after = {"username": username, "email": user.email}
    target = Target(type="person", id=str(user.pk), label=username)
    audit.record(as_actor(user), "person.registered", target, after=after)
    _join(invitation, user)
    return user


def open_invitations() -> QuerySet[Invitation]:
    """Return the invitations that can still be used."""
    return Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=clock.now())


def digest_of(secret: str) -> str:
    """Return what is kept of a link's secret."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


@transaction.atomic
def _store(actor: Actor, team: Team, email: str, role: str, digest: str) -> Invitation:
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)  # one invitation of an address at a time
    invitation = Invitation(
        team=team, email=email, role=role, digest=digest, expires_at=clock.now() + LIFE, invited_by_id=actor.user_id
    )
    if Membership.objects.filter(team=team, user__email__iexact=email).exists():
        raise InvalidInputError({"email": [_("This person is in the team already.")]})
    for older in Invitation.objects.filter(team=team, email__iexact=email, accepted_at=None, revoked_at=None):
        Invitation.objects.filter(pk=older.pk).update(revoked_at=clock.now())
        audit.record(actor, "invitation.revoked", _target(older))
    check(invitation)
    invitation.save()
    audit.record(actor, "invitation.created", _target(invitation), after={"email": email, "role": role})
    return invitation


def _mail(invitation: Invitation, link: str) -> bool:
    context = {"invitation": invitation, "team": invitation.team, "link": link}
    subject = _("Invitation to team {team}").format(team=invitation.team)
    try:
        send_mail(subject, render_to_string("emails/invitation.txt", context), None, [invitation.email])
    except (SMTPException, OSError) as error:
        # The link is shown to the inviter as well, who can hand it over.
        log.warning("invitation_not_mailed", invitation=invitation.pk, error=type(error).__name__)
        return False
    return True


def _take(digest: str) -> Invitation:
    """Lock the open invitation until the end of the transaction, so that it is used once."""
    rows = open_invitations().select_for_update(no_key=True, of=("self",)).select_related("team")
    invitation = rows.filter(digest=digest).first()
    if invitation is None:
        raise InvitationClosedError
    return invitation


def _join(invitation: Invitation, user: User) -> None:
    Invitation.objects.filter(pk=invitation.pk).update(accepted_at=clock.now(), accepted_by=user)
    Membership.objects.get_or_create(user=user, team=invitation.team, defaults={"role": invitation.role})
    audit.record(as_actor(user), "invitation.accepted", _target(invitation), after={"role": invitation.role})


def _target(invitation: Invitation) -> Target:
    return Target(type="invitation", id=str(invitation.pk), label=invitation.email[:200], team_id=invitation.team_id)
