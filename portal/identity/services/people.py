"""What administrators do with accounts. The platform keeps an administrator."""

from django.db import transaction
from django.utils.translation import gettext as _

from portal.core import audit
from portal.core.audit import Actor
from portal.core.errors import DomainError
from portal.identity.models import User
from portal.identity.services.accounts import target_of


class LastAdministratorError(DomainError):
    """Nobody would be left who administers the platform."""

    code = "last_administrator"

    def __init__(self) -> None:
        super().__init__(_("This is the last administrator. Make somebody else an administrator first."))


@transaction.atomic
def set_active(*, actor: Actor, person: User, active: bool) -> None:
    """Open or close an account. Closing it ends its sessions and tokens at once. Raise LastAdministratorError."""
    _change(actor, person, "is_active", value=active)


@transaction.atomic
def set_administrator(*, actor: Actor, person: User, administrator: bool) -> None:
    """Make a person an administrator of the platform, or no longer one. Raise LastAdministratorError."""
    _change(actor, person, "is_superuser", value=administrator)


def _change(actor: Actor, person: User, field: str, *, value: bool) -> None:
    # All administrators are locked in one order, so that two of them cannot remove each other at once.
    admins = {
        row.pk for row in User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk")
    }
    if not value and admins == {person.pk}:
        raise LastAdministratorError
    changed = User.objects.filter(pk=person.pk, **{field: not value}).update(**{field: value})
    if changed:
        audit.record(actor, "person.changed", target_of(person), before={field: not value}, after={field: value})
