"""Brings the rows of one cluster in line with what its streams brought: one transaction for each batch."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.conf import settings
from django.db import transaction

from clusters.manifests import names
from clusters.models import Cluster
from clusters.watch.diagnose import PodView, Trouble
from clusters.watch.foreign import ForeignUsage
from clusters.watch.hints import RECONCILE, RUN_CYCLE
from clusters.watch.inbox import Batch
from clusters.watch.inventory import Catalogue, NodeView
from clusters.watch.node_table import NodeTable
from clusters.watch.object_table import ClaimTable, ObjectTable
from clusters.watch.pod_table import PodTable, explained
from clusters.watch.reading import OBJECT_KINDS, ForeignPod, Reader, WarningView
from clusters.watch.reflector import Source
from portal.core import clock
from portal.core.publish import publish

# Kinds that came after a cluster's rights may have been granted: without them the rest is still heard.
_ADDED_KINDS = frozenset({"statefulsets", "cronjobs"})
# Warnings that came before the object they are about; the oldest are forgotten.
_MAX_WARNINGS = 5_000


def sources() -> list[Source]:
    """Return what has to be followed on a cluster."""
    ours = ",".join(f"{key}={value}" for key, value in _our_labels().items())
    return [
        Source("nodes"),
        Source("pods"),  # all of them: foreign ones take room on the nodes too
        *(Source(kind, labels=ours, is_essential=kind not in _ADDED_KINDS) for kind in OBJECT_KINDS),
        Source("events", fields="type=Warning", is_essential=False),
        Source("persistentvolumeclaims", is_essential=False),
    ]


def reader_for(catalogue: Catalogue) -> Reader:
    """Return what reads the objects of a cluster with these flavors and levels."""
    return Reader(settings.MUSTER_DOMAIN, _our_labels(), catalogue)


class Mirror:
    """The rows of one cluster. After any error of the database call `load` before the next `apply`.

    Applying a batch twice does no harm, so a batch whose transaction failed is simply applied again.
    """

    def __init__(self, cluster: Cluster, catalogue: Catalogue) -> None:
        self._cluster = cluster
        self._catalogue = catalogue
        self._foreign = ForeignUsage()
        self._warnings: OrderedDict[str, Trouble] = OrderedDict()
        self._nodes = NodeTable(cluster.pk, catalogue)
        self._pods = PodTable(cluster.pk)
        self._objects = {kind: ObjectTable(cluster.pk, name) for kind, name in OBJECT_KINDS.items()}
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
        ours |= self._nodes.take_new_faults()
        return frozenset(({RECONCILE} if ours else set()) | ({RUN_CYCLE} if supply else set()))

    def _apply_pods(self, batch: Batch, now: datetime) -> tuple[bool, set[str]]:
        """Return whether pods of ours changed, and the nodes on which foreign usage did."""
        changed, touched = False, set[str]()
        if "pods" in batch.lists:
            pods = batch.lists["pods"]
            touched |= self._foreign.replace(pod for pod in pods if isinstance(pod, ForeignPod))
            views = self._explained(pods)
            changed |= self._pods.forget(self._pods.absent_from(views), now)
            changed |= self._pods.write(views, now=now)
        events = batch.of("pods")
        alive = [pod for verb, pod in events.values() if verb != "DELETED"]
        deleted = [pod for verb, pod in events.values() if verb == "DELETED"]
        for pod in alive:
            touched |= self._foreign.put(pod) if isinstance(pod, ForeignPod) else self._foreign.drop(pod.uid)
        for pod in deleted:
            touched |= self._foreign.drop(pod.uid)
        changed |= self._pods.forget([pod.uid for pod in alive if isinstance(pod, ForeignPod)], now)
        changed |= self._pods.write(self._explained(alive), ended=self._explained(deleted), now=now)
        return changed, touched

    def _apply_objects(self, batch: Batch, now: datetime) -> bool:
        changed = False
        for kind, table in self._objects.items():
            if kind in batch.lists:
                views = batch.lists[kind]
                changed |= table.forget(table.absent_from(views), now)
                changed |= table.write(views, self._warnings, now)
            events = batch.of(kind)
            alive = [view for verb, view in events.values() if verb != "DELETED"]
            changed |= table.write(alive, self._warnings, now)
            changed |= table.forget([uid for uid, (verb, _view) in events.items() if verb == "DELETED"], now)
        return changed

    def _apply_nodes(self, batch: Batch, touched: Iterable[str], now: datetime) -> bool:
        changed = False
        views: dict[str, NodeView] = {}
        present = self._nodes.present()
        gone: set[str] = set()
        if "nodes" in batch.lists:
            views = {view.name: view for view in batch.lists["nodes"]}
            gone = present.keys() - views.keys()
        for verb, view in batch.of("nodes").values():
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
        changed |= self._claims.forget(claim for verb, claim in events if verb == "DELETED")
        return self._claims.write([claim for verb, claim in events if verb != "DELETED"]) or changed

    def _keep_warnings(self, batch: Batch) -> None:
        for warning in _warnings_in(batch):
            self._warnings[warning.about] = warning.trouble
            self._warnings.move_to_end(warning.about)
        while len(self._warnings) > _MAX_WARNINGS:
            self._warnings.popitem(last=False)

    def _apply_warnings(self, batch: Batch, now: datetime) -> bool:
        about = {warning.about for warning in _warnings_in(batch)}
        news = {uid: self._warnings[uid] for uid in about & self._warnings.keys()}
        changed = self._pods.warn(news, now)
        for table in self._objects.values():
            changed |= table.warn(news, now)
        return changed

    def _explained(self, pods: Iterable[PodView | ForeignPod]) -> list[PodView]:
        """Return our pods, with what events say of them."""
        return [explained(pod, self._warnings) for pod in pods if isinstance(pod, PodView)]


def _our_labels() -> Mapping[str, str]:
    return {names.label(settings.MUSTER_DOMAIN, "installation"): settings.MUSTER_INSTALLATION}


def _warnings_in(batch: Batch) -> list[WarningView]:
    """Return the warnings, oldest first, so that the newest about an object wins."""
    told = batch.lists.get("events", []) + [event for verb, event in batch.of("events").values() if verb != "DELETED"]
    return sorted((event for event in told if event.about), key=lambda event: event.at)
