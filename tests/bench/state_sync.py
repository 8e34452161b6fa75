"""The mirror of one large cluster: 10,000 nodes and 80,000 pods, then 1,000 changes of pods.

A process of its own serves the cluster as bytes. Cold: from the first list until every row is written, database and
network included. An event: the stream's bytes, reading them, and the rows that change. The official typed client reads
pages of the same pods in turn with ours, from the answer's bytes to the values that the mirror keeps.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.request import urlopen

from django.conf import settings
from kubernetes.client import ApiClient

from clusters.k8s.gateway import Gateway
from clusters.models import Node, ObservedPod
from clusters.watch.inbox import Batch
from clusters.watch.inventory import Catalogue, FlavorSelector
from clusters.watch.mirror import Mirror, reader_for, sources
from clusters.watch.process import calm_collector
from clusters.watch.reading import FORMS, Reader
from tests import factories
from tests.bench.supply import EVENTS, PRODUCT

NODES, PODS = 10_000, 80_000
TYPED_PODS, TYPED_ROUNDS = 500, 12  # many: each is short, and a busy machine disturbs some


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fill the rows from nothing, apply the changes, and read the same pods with the typed client."""
    with _served(args.nodes, args.pods) as url:
        flavor = factories.make_flavor("h100", label_value=PRODUCT)
        cluster = factories.make_cluster("large", server=url)
        selector = FlavorSelector(flavor.pk, flavor.name, flavor.label_key, PRODUCT, flavor.resource_name)
        with Gateway(cluster) as gateway:
            catalogue = Catalogue((selector,), ("topology/rack",))
            mirror, reader = Mirror(cluster, catalogue), reader_for(catalogue)
            calm_collector()
            began, cpu_began = time.perf_counter(), time.process_time()
            listed_s = _cold(gateway, reader, mirror)
            cold_s, cold_cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
            _check_rows(args)
            event_us = _events(gateway, reader, mirror)
            rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # before the typed client takes its own
            typed = _against_typed(url, reader)
    return {
        "cold_s": round(cold_s, 2),
        "cold_cpu_s": round(cold_cpu_s, 2),  # of this process: tells a busy machine from slow code
        "listed_s": round(listed_s, 2),
        "event_us": round(event_us, 1),
        "rss_mb": rss_mb,
        **typed,
        "facts": {"nodes": args.nodes, "pods": args.pods, "events": EVENTS},
    }


@contextmanager
def _served(nodes: int, pods: int) -> Iterator[str]:
    sizes = ["--nodes", str(nodes), "--pods", str(pods)]
    who = ["--domain", settings.MUSTER_DOMAIN, "--installation", settings.MUSTER_INSTALLATION]
    command = [sys.executable, "-m", "tests.bench.supply", *sizes, *who]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{(process.stdout.readline() if process.stdout else '').strip()}"
        finally:
            process.terminate()


def _cold(gateway: Gateway, reader: Reader, mirror: Mirror) -> float:
    """List and write all; return how much of it the lists took."""
    began = time.perf_counter()
    batch = Batch()
    for source in sources():
        read, form = partial(reader.read, source.kind), FORMS[source.kind]
        items, _version = gateway.read_list(source.kind, form, read, labels=source.labels)
        batch.add_list(source.kind, items)
    listed_s = time.perf_counter() - began
    mirror.load()
    mirror.apply(batch)
    return listed_s


def _check_rows(args: argparse.Namespace) -> None:
    written = Node.objects.count(), ObservedPod.objects.count()
    if written != (args.nodes, args.pods // 4):
        raise AssertionError(f"not all rows were written: {written}")


def _events(gateway: Gateway, reader: Reader, mirror: Mirror) -> float:
    """Return microseconds an event: stream, batch and rows, all changes in one batch as a busy second brings them."""
    began = time.perf_counter()
    batch = Batch()
    for event in gateway.watch("pods", FORMS["pods"], resource_version="1", timeout_s=EVENTS):
        batch.add_event("pods", event.type, reader.read("pods", event.object))
    mirror.apply(batch)
    spent_us = (time.perf_counter() - began) * 1e6
    changed = ObservedPod.objects.filter(restarts=1).count()
    if changed != EVENTS // 4:
        raise AssertionError(f"{changed} of our pods changed, not {EVENTS // 4}")
    return spent_us / EVENTS


def _against_typed(url: str, reader: Reader) -> dict[str, float]:
    """Compare the best CPU times over the same page of our own pods, taken in turn."""
    with urlopen(f"{url}/api/v1/pods?limit={TYPED_PODS}") as answer:  # noqa: S310 -- our own server
        page = answer.read()
    client = ApiClient()

    def raw() -> None:
        for item in FORMS["pods"].page(page).items or ():
            reader.read("pods", item)

    def typed() -> None:
        client.deserialize(page.decode(), "V1PodList", "application/json")

    turns = [(_cpu_us(raw), _cpu_us(typed)) for _ in range(TYPED_ROUNDS)]
    raw_us, typed_us = (min(column) / TYPED_PODS for column in zip(*turns, strict=True))
    return {
        "raw_us_a_pod": round(raw_us, 1),
        "typed_us_a_pod": round(typed_us, 1),
        "speedup_vs_typed": round(typed_us / raw_us, 1),
    }


def _cpu_us(call: Any) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1e6
