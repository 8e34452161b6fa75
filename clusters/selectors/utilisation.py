"""How busy the GPUs of runs are right now, for lists: one query for all rows of a page."""

from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.db.models import Avg

from clusters.models import GpuSample
from clusters.selectors.telemetry import STALE_SCRAPES
from portal.core import clock


def utilisation_of_runs(runs: Collection[str]) -> dict[str, float]:
    """Return the mean utilisation in percent of each run's GPUs over the last scrapes; what is silent is missing."""
    since = clock.now() - timedelta(seconds=STALE_SCRAPES * settings.MUSTER_SCRAPE_S + 1)
    rows = (
        GpuSample.objects.filter(run__in=runs, at__gte=since, utilisation__isnull=False)
        .values_list("run")
        .annotate(mean=Avg("utilisation"))
    )
    return {run: mean for run, mean in rows if mean is not None}
