"""Which pod writes the log of a rank."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from clusters.manifests import checkout, pods
from clusters.models import Cluster
from jobs.models import Job
from jobs.selectors.placement import places_of
from portal.core.errors import BadQueryError, DomainError


@dataclass(frozen=True, slots=True)
class LogSource:
    """One container on one cluster."""

    cluster: Cluster
    namespace: str
    pod: str
    container: str


def log_source(job: Job, rank: int) -> LogSource:
    """Return where the log of a rank of the newest attempt is. Raise DomainError when there is none yet."""
    place = next(iter(places_of([job]).get(job.pk, [])), None)
    if place is None:
        raise DomainError(_("It has no place yet, so it has no log."), code="log_not_ready")
    ranks = {one.rank: one for one in place.ranks}
    if rank not in ranks:
        known = ", ".join(map(str, sorted(ranks)))
        text = _("Unknown rank. Known are: %(known)s.") % {"known": known}
        raise BadQueryError(text, code="unknown_rank", field="rank")
    if not ranks[rank].pod:
        raise DomainError(_("The pod of this rank does not exist yet."), code="log_not_ready")
    return LogSource(place.attempt.cluster, place.attempt.namespace, ranks[rank].pod, _container(job))


def _container(job: Job) -> str:
    # When the checkout failed, its own words are what people look for.
    is_checkout = job.outcome_code == Job.Outcome.CODE_CHECKOUT
    return checkout.CONTAINER if is_checkout else pods.MAIN_CONTAINER
