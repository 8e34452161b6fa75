"""One round over the clusters: read, compare, apply, write. Nothing is asked of a cluster inside a transaction."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import structlog
from django.conf import settings

from clusters.k8s.gateway import Gateway, gateway_for
from clusters.k8s.values import GatewayError
from clusters.models import Cluster
from clusters.selectors.capacity import heard_clusters
from portal.core import clock, lease
from quotas.models import Space
from quotas.selectors.spaces import tenancy_of
from quotas.sync import guarding, look, record, wanted
from quotas.sync.look import Picture
from quotas.sync.record import Outcome
from quotas.sync.wanted import Wanted

log = structlog.get_logger(__name__)

LEASE = "quotas.spaces"
TTL_S = 60.0
# What is applied without being asked for: nobody else wanted it otherwise.
KEPT = frozenset({"missing", "outdated"})
ASKED = frozenset({"missing", "outdated", "altered"})


def sync_all() -> None:
    """Look at every cluster that answers. A second copy finds the lease taken and leaves."""
    token = lease.take(LEASE, holder="spaces", ttl_s=TTL_S)
    if token is None:
        return
    try:
        wish = wanted.everything()
        for cluster in heard_clusters(clock.now()):
            sync_one(cluster, wish)
    finally:
        lease.give_back(LEASE, token)


def sync_one(cluster: Cluster, wish: Wanted) -> None:
    """Look at one cluster, and apply what is asked for or kept. An outage leaves what was seen before."""
    tenancy = tenancy_of(cluster)
    rows = Space.objects.filter(cluster=cluster, asked_at__isnull=False)
    asked: dict[int | None, datetime | None] = {row.team_id: row.asked_at for row in rows}
    try:
        gateway = gateway_for(cluster)
        picture = look.read(gateway)
        outcomes = list(_outcomes(gateway, picture, wish, asked, is_kept=tenancy.is_kept))
    except GatewayError as error:
        record.note(cluster, error.message)
        log.info("spaces_not_seen", cluster=cluster.name, error=error.message)
        return
    record.write(cluster, outcomes, guarding.finding(cluster, tenancy.guard, picture))


def _outcomes(
    gateway: Gateway, picture: Picture, wish: Wanted, asked: Mapping[int | None, datetime | None], *, is_kept: bool
) -> Iterator[Outcome]:
    for team_id, bodies in wish.by_team.items():
        states = ASKED if team_id in asked else KEPT if is_kept else frozenset[str]()
        seen = list(look.mend(gateway, picture, bodies, states, settings.MUSTER_DOMAIN))
        yield Outcome(team_id, seen, asked.get(team_id))
