"""Who asks, what they may do, and tokens of service accounts: authentication and authorization in small.

There are no roles: everybody may do everything that is not denied by the switch in `failures`. Tokens of service
accounts are signed with a key that follows from the server's own token, so they outlive a restart.
"""

import base64
import binascii
import hashlib
import hmac
import time
import uuid
from dataclasses import dataclass
from typing import Any

import orjson

from clusters.simulated.clock import rfc3339
from clusters.simulated.errors import Cause, invalid, unauthorized
from clusters.simulated.resources import SERVICE_ACCOUNTS, Obj
from clusters.simulated.store import Store

ADMINISTRATOR = "simulated"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_DEFAULT_S, _SHORTEST_S, _LONGEST_S = 3600, 600, 2**32


@dataclass(frozen=True, slots=True)
class User:
    """A name and groups, as a review tells them."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


class Identities:
    """Knows bearer tokens: the server's own, which may do all, and those that it issued."""

    def __init__(self, store: Store, token: str) -> None:
        self._store = store
        self._token = token
        self._key = hashlib.sha256(token.encode()).digest()

    def user_of(self, token: str) -> User:
        """Raises the 401 of a token that is unknown, has ended, or whose account is gone."""
        if token == self._token:
            return User(ADMINISTRATOR, ("system:masters", "system:authenticated"))
        claims = self._verified(token)
        account = claims["kubernetes.io"]
        held = self._store.get(SERVICE_ACCOUNTS, account["namespace"], account["serviceaccount"]["name"])
        if claims["exp"] <= time.time() or held is None:
            raise unauthorized()
        if held["metadata"]["uid"] != account["serviceaccount"]["uid"]:
            raise unauthorized()
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}", "system:authenticated")
        return User(claims["sub"], groups)

    def issue(self, account: Obj, request: Any) -> Obj:
        """Answers a TokenRequest. The real server signs with a key pair; the shape of the token is the same."""
        spec = (request.get("spec") if isinstance(request, dict) else None) or {}
        seconds = spec.get("expirationSeconds") or _DEFAULT_S
        _check_seconds(account, seconds)
        now = int(time.time())
        end = now + seconds
        meta = account["metadata"]
        claims = {
            "aud": spec.get("audiences") or [_ISSUER],
            "exp": end,
            "iat": now,
            "iss": _ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": meta["namespace"],
                "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
        }
        status = {"token": self._signed(claims), "expirationTimestamp": rfc3339(end)}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "creationTimestamp": rfc3339(now)},
            "spec": {"audiences": claims["aud"], "expirationSeconds": seconds, "boundObjectRef": None},
            "status": status,
        }

    def _signed(self, claims: dict[str, Any]) -> str:
        head = _encoded(orjson.dumps({"alg": "HS256", "kid": "simulated"}))
        body = f"{head}.{_encoded(orjson.dumps(claims))}"
        return f"{body}.{_encoded(self._signature(body))}"

    def _verified(self, token: str) -> dict[str, Any]:
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), _encoded(self._signature(body)).encode()):
            raise unauthorized()
        try:
            claims: dict[str, Any] = orjson.loads(_decoded(body.partition(".")[2]))
        except (orjson.JSONDecodeError, binascii.Error) as error:
            raise unauthorized() from error
        return claims

    def _signature(self, body: str) -> bytes:
        return hmac.new(self._key, body.encode(), hashlib.sha256).digest()


def _check_seconds(account: Obj, seconds: Any) -> None:
    if isinstance(seconds, int) and _SHORTEST_S <= seconds <= _LONGEST_S:
        return
    text = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    if isinstance(seconds, int) and seconds > _LONGEST_S:
        text = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
    cause = Cause("spec.expirationSeconds", "FieldValueInvalid", text)
    raise invalid(SERVICE_ACCOUNTS, account["metadata"]["name"], [cause])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
