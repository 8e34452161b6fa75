"""Who acts in a request, for the audit log."""

from django.http import HttpRequest

from portal.core.audit import Actor
from portal.identity.models import ApiToken, User


def actor_of(request: HttpRequest) -> Actor:
    """Return the person of a page's or REST request, with the start of the token when one was used."""
    token = getattr(request, "auth", None)
    token_id = token.token_key if isinstance(token, ApiToken) else ""
    return Actor(name=request.user.get_username(), user_id=request.user.pk, token_id=token_id)


def as_actor(user: User) -> Actor:
    """Return the person as an actor, where a request has not signed them in yet."""
    return Actor(name=user.get_username(), user_id=user.pk)
