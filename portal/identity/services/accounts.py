"""People's accounts: signing in, the password, the profile."""

from collections.abc import Mapping

from django.contrib.auth import authenticate
from django.db import transaction

from portal.core import audit
from portal.core.audit import Actor, Target
from portal.identity.actors import as_actor
from portal.identity.models import User
from portal.identity.services import attempts

# Per quarter of an hour. An address may serve a whole office, an account at an address serves one person.
TRIES_PER_ACCOUNT = 8
TRIES_PER_ADDRESS = 100
PROFILE_FIELDS = ("first_name", "last_name", "theme", "time_zone")


def check_password(*, username: str, password: str, address: str) -> User | None:
    """Return the person whom name and password fit. None also when there were too many tries: both look the same."""
    within = attempts.claim("sign-in", username, address, limit=TRIES_PER_ACCOUNT)
    within = attempts.claim("sign-in", address, limit=TRIES_PER_ADDRESS) and within
    # Asked even when it does not count, so that the time of the answer does not tell.
    user = authenticate(username=username, password=password)
    if user is None or not within:
        return None
    attempts.forgive("sign-in", username, address)
    return user


@transaction.atomic
def record_sign_in(*, user: User) -> None:
    """Write down that the person signed in."""
    audit.record(as_actor(user), "person.signed_in", target_of(user))


@transaction.atomic
def record_sign_out(*, user: User) -> None:
    """Write down that the person signed out."""
    audit.record(as_actor(user), "person.signed_out", target_of(user))


@transaction.atomic
def set_password(*, actor: Actor, user: User, password: str) -> None:
    """Set a password that the validators have accepted. All other sessions of the person end with it."""
    user.set_password(password)
    user.save(update_fields=["password"])
    audit.record(actor, "person.password_changed", target_of(user))


@transaction.atomic
def change_profile(*, actor: Actor, user: User, changes: Mapping[str, str]) -> None:
    """Set name, theme or time zone. What is as it was is not written."""
    row = User.objects.select_for_update().get(pk=user.pk)
    wanted = {name: value for name, value in changes.items() if name in PROFILE_FIELDS}
    after = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if not after:
        return
    before = {name: getattr(row, name) for name in after}
    User.objects.filter(pk=user.pk).update(**after)
    audit.record(actor, "person.changed", target_of(user), before=before, after=after)


def target_of(user: User) -> Target:
    """Return the person as the object of an act."""
    return Target(type="person", id=str(user.pk), label=user.get_username())
