"""Rows of our pods, kept in line with one cluster."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from clusters.models import ObservedPod
from clusters.watch.diagnose import PodView, Trouble
from portal.core.upsert import upsert


class PodTable:
    """Writes only what changed: it remembers the version of each row that is there."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._versions: dict[str, str] = {}

    def load(self) -> None:
        """Read what is written already."""
        rows = ObservedPod.objects.filter(cluster_id=self._cluster_id, gone_at=None)
        self._versions = dict(rows.values_list("uid", "resource_version"))

    def __contains__(self, uid: str) -> bool:
        return uid in self._versions

    def absent_from(self, listed: Iterable[PodView]) -> set[str]:
        """Return the uids of rows that a complete list does not have."""
        return self._versions.keys() - {view.uid for view in listed}

    def write(self, views: Iterable[PodView], *, ended: Iterable[PodView] = (), now: datetime) -> bool:
        """Write the pods that changed, and those that were just deleted in their last state."""
        news, last = [view for view in views if self._is_news(view)], list(ended)
        self._upsert(news, now, None)
        self._upsert(last, now, now)
        self._versions |= {view.uid: view.resource_version for view in news}
        for view in last:
            self._versions.pop(view.uid, None)
        return bool(news or last)

    def forget(self, uids: Iterable[str], now: datetime) -> bool:
        """Mark rows as gone, by uid: a pod of the same name is another pod."""
        gone = [uid for uid in uids if self._versions.pop(uid, None) is not None]
        if not gone:
            return False
        rows = ObservedPod.objects.filter(cluster_id=self._cluster_id, uid__in=gone, gone_at=None)
        return bool(rows.update(gone_at=now, seen_at=now))

    def warn(self, warnings: Mapping[str, Trouble], now: datetime) -> bool:
        """Put what events say on pods that wait without telling why."""
        changed = 0
        for uid in self._versions.keys() & warnings.keys():
            trouble = warnings[uid]
            rows = ObservedPod.objects.filter(cluster_id=self._cluster_id, uid=uid, phase="Pending", reason="")
            changed += rows.filter(is_scheduled=concerns_bound(trouble)).update(
                reason=trouble.reason, message=trouble.message, seen_at=now
            )
        return bool(changed)

    def _is_news(self, view: PodView) -> bool:
        known = self._versions.get(view.uid)
        if known is None or not (known.isdigit() and view.resource_version.isdigit()):
            return known != view.resource_version
        return int(view.resource_version) > int(known)

    def _upsert(self, views: Sequence[PodView], now: datetime, gone_at: datetime | None) -> None:
        same = {"cluster_id": self._cluster_id, "seen_at": now, "gone_at": gone_at}
        upsert(ObservedPod, views, PodView.__struct_fields__, same=same, unique=("cluster_id", "uid"))


def explained(view: PodView, warnings: Mapping[str, Trouble]) -> PodView:
    """Return the pod with what events say about it, where it waits without telling why."""
    trouble = warnings.get(view.uid)
    if trouble is None or view.reason or view.phase != "Pending" or concerns_bound(trouble) != view.is_scheduled:
        return view
    return replace(view, reason=trouble.reason, message=trouble.message)


def concerns_bound(trouble: Trouble) -> bool:
    """Return whether a warning speaks of a pod that has a node; the scheduler's is out of date then."""
    return trouble.reason != "FailedScheduling"
