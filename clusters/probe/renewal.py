"""Give a cluster's token a successor before it ends, where the account may do that."""

from dataclasses import dataclass

import structlog

from clusters.k8s.connection import Connection
from clusters.k8s.gateway import Gateway
from clusters.k8s.values import GatewayError
from clusters.manifests.rights import service_account
from clusters.models import Cluster
from clusters.probe import access
from clusters.services.findings import store_renewed_token

log = structlog.get_logger(__name__)

# What an API server grants at least.
_SHORTEST_S = 600


@dataclass(frozen=True, slots=True)
class Renewed:
    """A new token, in a connection whose repr does not show it, and when it ends."""

    connection: Connection
    ends_at: str


def renew(cluster: Cluster, gateway: Gateway) -> bool:
    """Ask for a token as long as the one at hand, try it, and keep it. Return whether that was done.

    Raise a GatewayError when the cluster says no; the old token stays in use then.
    """
    user = gateway.user_name()
    made = _requested(cluster, gateway, user)
    if made is None or not _speaks_for(user, made.connection):
        log.warning("token_not_renewed", cluster=cluster.name)
        return False
    kept = store_renewed_token(cluster=cluster, token=made.connection.token, expires_at=made.ends_at)
    log.info("token_renewed" if kept else "token_renewal_overtaken", cluster=cluster.name, expires_at=made.ends_at)
    return kept


def _requested(cluster: Cluster, gateway: Gateway, user: str) -> Renewed | None:
    account, life = service_account(user), access.life_of(cluster.token)
    if account is None or life is None:
        return None
    given = gateway.request_token(*account, seconds=max(_SHORTEST_S, life.seconds))
    text = str(given.get("token") or "")
    if not text:
        return None
    connection = Connection(server=cluster.server, ca_data=cluster.ca_data, token=text)
    return Renewed(connection, str(given.get("expirationTimestamp") or ""))


def _speaks_for(user: str, connection: Connection) -> bool:
    """Try the new token before the old one is let go."""
    try:
        with Gateway(connection) as gateway:
            return gateway.user_name() == user
    except GatewayError:
        return False
