"""What our account may do, and how long its token lives."""

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from clusters.k8s.gateway import Gateway
from clusters.manifests.rights import EVERYWHERE, IN_TEAMS, Act, renewal, service_account
from clusters.models import Severity
from clusters.services.findings import Finding

SHORT = timedelta(days=7)
# A token is renewed when less than this share of its life is left.
RENEW_AT = 1 / 3


@dataclass(frozen=True, slots=True)
class Life:
    """From when until when a token says that it is good."""

    begins_at: datetime | None
    ends_at: datetime | None

    @property
    def seconds(self) -> int:
        """How long it was made for; 0 when that is not known."""
        if self.begins_at is None or self.ends_at is None:
            return 0
        return max(0, int((self.ends_at - self.begins_at).total_seconds()))


def rights(gateway: Gateway, namespaces: Iterable[str]) -> Finding:
    """Ask the cluster about every single right of the one list."""
    missing = sorted(_missing(gateway, tuple(namespaces)))
    numbers: dict[str, object] = {"user": gateway.user_name(), "missing": [row_of(act) for act in missing]}
    return Finding("rights", Severity.PROBLEM if missing else Severity.OK, numbers)


def life_of(token: str) -> Life | None:
    """Read when a token begins and ends, without asking whether it is genuine: it is ours. None: it does not say.

    Only these two claims leave this function; the token goes into no log and no message.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    if not isinstance(claims, dict):
        return None
    return Life(_moment(claims.get("iat")), _moment(claims.get("exp")))


def token(text: str, now: datetime, *, renews: bool | None = None, user: str = "") -> Finding:
    """Warn of a token that ends soon and is not renewed. `renews` None: not known whether the account may do that."""
    life = life_of(text)
    if life is None:
        return Finding("token", Severity.UNKNOWN, {"is": "opaque"})
    if life.ends_at is None:
        return Finding("token", Severity.WARNING, {"is": "endless"})
    numbers = {"ends_at": life.ends_at.isoformat(), "renews": renews, "user": user}
    if life.ends_at <= now:
        return Finding("token", Severity.PROBLEM, {"is": "over", **numbers})
    if life.ends_at - now < SHORT and not renews:
        return Finding("token", Severity.WARNING, {"is": "short", **numbers})
    return Finding("token", Severity.OK, {"is": "good", **numbers})


def is_due(text: str, now: datetime) -> bool:
    """Return whether so little of the token's life is left that it should be renewed."""
    life = life_of(text)
    if life is None or life.ends_at is None or not life.seconds:
        return False
    return 0 < (life.ends_at - now).total_seconds() < life.seconds * RENEW_AT


def may_renew(gateway: Gateway, user: str) -> bool:
    """Ask whether the account may make itself a new token."""
    account = service_account(user)
    if account is None:
        return False
    return all(gateway.may(act.attributes()) for act in renewal(account[1]).acts(account[0]))


def _missing(gateway: Gateway, namespaces: Collection[str]) -> Iterator[Act]:
    for right in EVERYWHERE:
        yield from (act for act in right.acts() if not gateway.may(act.attributes()))
    for right in IN_TEAMS:
        for act in right.acts():
            # What is granted everywhere need not be asked about in every namespace.
            if namespaces and not gateway.may(act.attributes()):
                here = (replace(act, namespace=namespace) for namespace in namespaces)
                yield from (each for each in here if not gateway.may(each.attributes()))


def row_of(act: Act) -> list[str]:
    """Return an act as a finding keeps it."""
    return [act.namespace, act.group, act.resource, act.verb, *([act.name] if act.name else [])]


def _moment(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
