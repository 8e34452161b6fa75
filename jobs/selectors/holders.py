"""Who holds the GPUs of a cluster, for its pages. They name this function in a setting, being below."""

from collections import defaultdict

from django.db.models import Count, Exists, OuterRef, Sum
from django.urls import reverse

from clusters.models import Cluster
from clusters.selectors.topology import Holder
from jobs.models import Allocation
from jobs.selectors.jobs import jobs_visible_to
from portal.identity.models import User


def holders_by_node(cluster: Cluster, user: User, *, node_id: int | None = None) -> dict[int, list[Holder]]:
    """Return what holds GPUs of the cluster, or of one node of it, by node. One query.

    Jobs that the person may see are named and linked; of others only the team is told.
    """
    held = Allocation.objects.filter(released_at=None, node__cluster=cluster)
    rows = (
        (held if node_id is None else held.filter(node_id=node_id))
        .values(
            *("node_id", "attempt__job__uid", "attempt__job__name", "attempt__job__number"),
            "attempt__job__team__slug",
            is_visible=Exists(jobs_visible_to(user).filter(pk=OuterRef("attempt__job_id"))),
        )
        .annotate(all_gpus=Sum("gpus"), all_cpu=Sum("cpu_milli"), all_memory=Sum("memory_mib"), ranks=Count("pk"))
        .order_by("node_id", "attempt__job__name", "attempt__job__number", "attempt__job__uid")
    )
    holders: dict[int, list[Holder]] = defaultdict(list)
    for row in rows:
        uid = row["attempt__job__uid"]
        name = f"{row['attempt__job__name']}-{row['attempt__job__number']}"
        holders[row["node_id"]].append(
            Holder(
                label=name if row["is_visible"] else row["attempt__job__team__slug"],
                url=reverse("jobs:detail", args=[uid]) if row["is_visible"] else "",
                gpus=row["all_gpus"],
                run=uid,
                cpu_milli=row["all_cpu"],
                memory_mib=row["all_memory"],
                pods=row["ranks"],
            )
        )
    return dict(holders)
