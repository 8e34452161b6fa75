"""Rows of our Jobs, StatefulSets and Deployments, and of volume claims, kept in line with one cluster."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime

from clusters.models import ObservedObject, PersistentClaim
from clusters.watch.diagnose import ObjectView, Trouble
from clusters.watch.reading import ClaimView
from portal.core.upsert import upsert

_COLUMNS = [column.name for column in fields(ObjectView)]
_CLAIM_COLUMNS = [column.name for column in fields(ClaimView) if column.name != "uid"]
_BATCH = 500


class ObjectTable:
    """One kind of object. Writes only what changed: it remembers the version of each row that is there."""

    def __init__(self, cluster_id: int, kind: str) -> None:
        self._cluster_id = cluster_id
        self.kind = kind
        self._versions: dict[str, str] = {}

    def load(self) -> None:
        """Read what is written already."""
        rows = ObservedObject.objects.filter(cluster_id=self._cluster_id, kind=self.kind, gone_at=None)
        self._versions = dict(rows.values_list("uid", "resource_version"))

    def absent_from(self, listed: Iterable[ObjectView]) -> set[str]:
        """Return the uids of rows that a complete list does not have."""
        return self._versions.keys() - {view.uid for view in listed}

    def write(self, views: Iterable[ObjectView], warnings: Mapping[str, Trouble], now: datetime) -> bool:
        """Write the objects that changed."""
        news = [_warned(view, warnings) for view in views if self._versions.get(view.uid) != view.resource_version]
        same = {"cluster_id": self._cluster_id, "seen_at": now, "gone_at": None}
        upsert(ObservedObject, news, _COLUMNS, same=same, unique=("cluster_id", "uid"))
        self._versions |= {view.uid: view.resource_version for view in news}
        return bool(news)

    def forget(self, uids: Iterable[str], now: datetime) -> bool:
        """Mark rows as gone, by uid: an object of the same name is another object."""
        gone = [uid for uid in uids if self._versions.pop(uid, None) is not None]
        if not gone:
            return False
        rows = ObservedObject.objects.filter(cluster_id=self._cluster_id, uid__in=gone, gone_at=None)
        return bool(rows.update(gone_at=now, seen_at=now))

    def warn(self, warnings: Mapping[str, Trouble], now: datetime) -> bool:
        """Put the newest warning on each object that it is about."""
        changed = 0
        for uid in self._versions.keys() & warnings.keys():
            rows = ObservedObject.objects.filter(cluster_id=self._cluster_id, uid=uid)
            changed += rows.exclude(warning=warnings[uid].message).update(warning=warnings[uid].message, seen_at=now)
        return bool(changed)


class ClaimTable:
    """Volume claims of all namespaces; a claim that is deleted leaves no row."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._uids: dict[tuple[str, str], str] = {}

    def replace(self, claims: Sequence[ClaimView]) -> bool:
        """Take the whole list."""
        names = {_place(claim) for claim in claims}
        for row in PersistentClaim.objects.filter(cluster_id=self._cluster_id):
            if (row.namespace, row.name) not in names:
                row.delete()
        return self.write(claims)

    def write(self, claims: Sequence[ClaimView]) -> bool:
        """Write claims as they are now."""
        if not claims:
            return False
        self._uids |= {_place(claim): claim.uid for claim in claims}
        PersistentClaim.objects.bulk_create(
            [
                PersistentClaim(cluster_id=self._cluster_id, **{name: getattr(claim, name) for name in _CLAIM_COLUMNS})
                for claim in claims
            ],
            batch_size=_BATCH,
            update_conflicts=True,
            unique_fields=["cluster", "namespace", "name"],
            update_fields=["access_modes", "phase", "size", "storage_class"],
        )
        return True

    def forget(self, claims: Iterable[ClaimView]) -> bool:
        """Delete the rows of deleted claims, unless a new claim took the name."""
        changed = 0
        for claim in claims:
            place = _place(claim)
            if self._uids.get(place) == claim.uid:
                del self._uids[place]
                namespace, name = place
                rows = PersistentClaim.objects.filter(cluster_id=self._cluster_id, namespace=namespace, name=name)
                changed += rows.delete()[0]
        return bool(changed)


def _place(claim: ClaimView) -> tuple[str, str]:
    return claim.namespace, claim.name


def _warned(view: ObjectView, warnings: Mapping[str, Trouble]) -> ObjectView:
    trouble = warnings.get(view.uid)
    return replace(view, warning=trouble.message) if trouble and not view.warning else view
