"""Brings the rows of one cluster in line with what its streams brought: one transaction for each batch."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.conf import settings
from django.db import transaction

from clusters.k8s.values import JsonObject
from clusters.manifests import names
from clusters.models import Cluster
from clusters.watch.diagnose import ObjectView, PodView, Trouble, object_view, pod_view, warning_of
from clusters.watch.foreign import ForeignUsage
from clusters.watch.hints import RECONCILE, RUN_CYCLE
from clusters.watch.inbox import Batch
from clusters.watch.inventory import Catalogue, NodeView, node_view
from clusters.watch.node_table import NodeTable
from clusters.watch.object_table import ClaimTable, ObjectTable
from clusters.watch.pod_table import PodTable, explained, is_ours
from clusters.watch.reflector import Source
from portal.core import clock
from portal.core.publish import publish

_OBJECT_KINDS = {"jobs": "Job", "deployments": "Deployment", "statefulsets": "StatefulSet"}
# Kinds that came after a cluster's rights may have been granted: without them the rest is still heard.
_ADDED_KINDS = frozenset({"statefulsets"})
# Warnings that came before the object they are about; the oldest are forgotten.
_MAX_WARNINGS = 5_000


def sources() -> list[Source]:
    """Return what has to be followed on a cluster."""
    ours = ",".join(f"{key}={value}" for key, value in _our_labels().items())
    return [
        Source("nodes"),
        Source("pods"),  # all of them: foreign ones take room on the nodes too
        *(Source(kind, labels=ours, is_essential=kind not in _ADDED_KINDS) for kind in _OBJECT_KINDS),
        Source("events", fields="type=Warning", is_essential=False),
        Source("persistentvolumeclaims", is_essential=False),
    ]


class Mirror:
    """The rows of one cluster. After any error of the database call `load` before the next `apply`.

    Applying a batch twice does no harm, so a batch whose transaction failed is simply applied again.
    """

    def __init__(self, cluster: Cluster, catalogue: Catalogue) -> None:
        self._cluster = cluster
        self._catalogue = catalogue
        self._domain = settings.MUSTER_DOMAIN
        self._labels = _our_labels()
        self._foreign = ForeignUsage()
        self._warnings: OrderedDict[str, Trouble] = OrderedDict()
        self._nodes = NodeTable(cluster.pk, catalogue)
        self._pods = PodTable(cluster.pk)
        self._objects = {kind: ObjectTable(cluster.pk, name) for kind, name in _OBJECT_KINDS.items()}
        self._claims = ClaimTable(cluster.pk)
        self._compares_all_nodes = True

    def load(self) -> None:
        """Read what is written already, so that only changes are written."""
        self._nodes.load()
        self._pods.load()
        for table in self._objects.values():
            table.load()
        # What foreign pods take is in memory already, and the row may have missed it.
        self._compares_all_nodes = True

    def apply(self, batch: Batch) -> frozenset[str]:
        """Write the batch, tell open pages of it, and return the tasks that should run now."""
        now = clock.now()
        self._keep_warnings(batch)
        with transaction.atomic():
            ours, touched = self._apply_pods(batch, now)
            ours |= self._apply_objects(batch, now)
            ours |= self._apply_warnings(batch, now)
            supply = self._apply_nodes(batch, touched, now)
            supply |= self._apply_claims(batch)
            if {"nodes", "pods"} & batch.lists.keys():
                Cluster.objects.filter(pk=self._cluster.pk).update(synced_at=now)
            if ours or supply:
                publish(f"cluster:{self._cluster.pk}", self._cluster.name)
        self._compares_all_nodes = False
        return frozenset(({RECONCILE} if ours else set()) | ({RUN_CYCLE} if supply else set()))

    def _apply_pods(self, batch: Batch, now: datetime) -> tuple[bool, set[str]]:
        """Return whether pods of ours changed, and the nodes on which foreign usage did."""
        changed, touched = False, set[str]()
        if "pods" in batch.lists:
            items = batch.lists["pods"]
            touched |= self._foreign.replace(item for item in items if not self._is_ours(item))
            views = [self._pod(item) for item in items if self._is_ours(item)]
            changed |= self._pods.forget(self._pods.absent_from(views), now)
            changed |= self._pods.write(views, now=now)
        events = batch.of("pods")
        alive = [body for kind, body in events.values() if kind != "DELETED"]
        deleted = [body for kind, body in events.values() if kind == "DELETED"]
        for body in alive:
            touched |= self._foreign.drop(body["metadata"]["uid"]) if self._is_ours(body) else self._foreign.put(body)
        for body in deleted:
            touched |= self._foreign.drop(body["metadata"]["uid"])
        lost = [body["metadata"]["uid"] for body in alive if not self._is_ours(body)]
        changed |= self._pods.forget(lost, now)
        changed |= self._pods.write(
            [self._pod(body) for body in alive if self._is_ours(body)],
            ended=[self._pod(body) for body in deleted if self._is_ours(body)],
            now=now,
        )
        return changed, touched

    def _apply_objects(self, batch: Batch, now: datetime) -> bool:
        changed = False
        for kind, table in self._objects.items():
            if kind in batch.lists:
                views = [self._object(table.kind, item) for item in batch.lists[kind]]
                changed |= table.forget(table.absent_from(views), now)
                changed |= table.write(views, self._warnings, now)
            events = batch.of(kind)
            alive = [self._object(table.kind, body) for verb, body in events.values() if verb != "DELETED"]
            changed |= table.write(alive, self._warnings, now)
            changed |= table.forget([uid for uid, (verb, _body) in events.items() if verb == "DELETED"], now)
        return changed

    def _apply_nodes(self, batch: Batch, touched: Iterable[str], now: datetime) -> bool:
        changed = False
        views: dict[str, NodeView] = {}
        present = self._nodes.present()
        gone: set[str] = set()
        if "nodes" in batch.lists:
            views = {view.name: view for view in map(self._node, batch.lists["nodes"])}
            gone = present.keys() - views.keys()
        for verb, body in batch.of("nodes").values():
            view = self._node(body)
            if verb != "DELETED":
                views[view.name] = view
                gone.discard(view.name)
            elif (views[view.name].uid if view.name in views else present.get(view.name)) == view.uid:
                views.pop(view.name, None)
                if view.name in present:
                    gone.add(view.name)
        changed |= self._nodes.forget(gone, now)
        for name in self._nodes.present() if self._compares_all_nodes else touched:
            if name not in views and (known := self._nodes.view(name)):
                views[name] = known
        shares = {name: self._foreign.share(name, self._catalogue.flavors) for name in views}
        return self._nodes.write(shares, views.values(), now) or changed

    def _apply_claims(self, batch: Batch) -> bool:
        kind = "persistentvolumeclaims"
        changed = self._claims.replace(batch.lists[kind]) if kind in batch.lists else False
        events = batch.of(kind).values()
        changed |= self._claims.forget(body for verb, body in events if verb == "DELETED")
        return self._claims.write(body for verb, body in events if verb != "DELETED") or changed

    def _keep_warnings(self, batch: Batch) -> None:
        for item in _events_in(batch):
            if warning := warning_of(item):
                uid, trouble = warning
                self._warnings[uid] = trouble
                self._warnings.move_to_end(uid)
        while len(self._warnings) > _MAX_WARNINGS:
            self._warnings.popitem(last=False)

    def _apply_warnings(self, batch: Batch, now: datetime) -> bool:
        news = {uid: self._warnings[uid] for uid, _trouble in filter(None, map(warning_of, _events_in(batch)))}
        changed = self._pods.warn(news, now)
        for table in self._objects.values():
            changed |= table.warn(news, now)
        return changed

    def _is_ours(self, body: JsonObject) -> bool:
        return is_ours(body, self._labels)

    def _pod(self, body: JsonObject) -> PodView:
        view = pod_view(body, domain=self._domain, gpu_resources=self._catalogue.gpu_resources)
        return explained(view, self._warnings)

    def _object(self, kind: str, body: JsonObject) -> ObjectView:
        return object_view(kind, body, domain=self._domain)

    def _node(self, body: JsonObject) -> NodeView:
        return node_view(body, self._catalogue.flavors)


def _our_labels() -> Mapping[str, str]:
    return {names.label(settings.MUSTER_DOMAIN, "installation"): settings.MUSTER_INSTALLATION}


def _events_in(batch: Batch) -> list[JsonObject]:
    """Return the event objects, oldest first, so that the newest about an object wins."""
    items = batch.lists.get("events", []) + [body for verb, body in batch.of("events").values() if verb != "DELETED"]
    return sorted(items, key=_when)


def _when(event: JsonObject) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
