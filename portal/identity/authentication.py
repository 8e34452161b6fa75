"""How a REST request says who it is: a personal token, or the session of the browser."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.crypto import hash_token
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.authentication import SessionAuthentication as DjangoSession
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.core import clock
from portal.identity.models import ApiToken, User

# Older clients of Django peers say "Token".
WORDS = (b"bearer", b"token")
# A busy client must not turn each of its reads into a write.
LAST_USED_STEP = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer muster_...`. An expired or revoked token is refused; its row stays for the audit log.

    The library's own class is not used: it deletes expired rows and fails on a header that is not UTF-8.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the person and the token; None when the header is for somebody else."""
        word, _space, secret = get_authorization_header(request).partition(b" ")
        if word.lower() not in WORDS:
            return None
        token = _live_token(secret.strip())
        if token is None:
            raise AuthenticationFailed(_("This token is unknown, expired or revoked."), code="invalid_token")
        _touch(token)
        return token.user, token

    def authenticate_header(self, _request: Request) -> str:
        """Make a missing or refused token a 401."""
        return 'Bearer realm="muster"'


class SessionAuthentication(DjangoSession):
    """The browser's session, with its CSRF check."""

    def authenticate_header(self, _request: Request) -> str:
        """Make a missing session a 401 rather than a 403."""
        return 'Session realm="muster"'


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself by its name
    """How the token stands in the OpenAPI document."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, _auto_schema: object) -> dict[str, str]:
        """Describe the header."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "muster_..."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself by its name
    """How the browser's session stands in the OpenAPI document."""

    target_class = SessionAuthentication
    name = "session"
    priority = 1  # before the library's own description of the class that ours derives from

    def get_security_definition(self, _auto_schema: object) -> dict[str, str]:
        """Describe the cookie."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


def _live_token(secret: bytes) -> ApiToken | None:
    # Any byte has a Latin-1 character, so that no header is an error; a real token is ASCII.
    digest = hash_token(secret.decode("latin-1"))
    unexpired = Q(expiry=None) | Q(expiry__gt=clock.now())
    tokens: QuerySet[ApiToken] = ApiToken.objects.select_related("user").filter(unexpired)
    return tokens.filter(digest=digest, revoked_at=None, user__is_active=True).first()


def _touch(token: ApiToken) -> None:
    now = clock.now()
    if token.last_used_at is not None and token.last_used_at > now - LAST_USED_STEP:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_STEP)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
