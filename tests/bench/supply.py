"""A cluster's state as bytes: `python -m tests.bench.supply --nodes N --pods M` serves lists and streams of changes.

A quarter of the pods are ours, in Jobs of four workers, unless told otherwise; the others are six daemons on every
node, as monitoring, network and storage need them. With `--quiet` a stream stays open and tells nothing; whatever
somebody wants to change is then refused, noted, and listed under /written. Objects carry what a real API server sends
with them (conditions, volumes, container statuses, the notes on who set which field), 4 kB a pod. All pages and
changes are made before the first is asked for, so that the server costs little beside what is measured.
"""

import argparse
import json
import select
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PRODUCT = "NVIDIA-H100-80GB-HBM3"
GANG = 4  # workers of a Job
GPUS = 2  # of each
RACK = 16  # nodes
PAGE = 500  # objects
EVENTS = 1_000  # of pods
_SINCE = "2026-11-30T08:00:00Z"
_LISTED = 5_000_000  # version of every list; events come after it
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
_REFUSED = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
Json = dict[str, Any]


class Supply:
    """Objects by number; the same sizes give the same bytes."""

    def __init__(
        self, nodes: int, pods: int, domain: str, installation: str, *, ours: int | None = None, gang: int = GANG
    ) -> None:
        self.nodes = nodes
        self.gang = gang
        self.ours = (pods // 4 if ours is None else ours) // gang * gang
        self.pods = pods
        self._domain = domain
        self._installation = installation
        self._node_text = _template(self._node())
        self._our_text = _template(self._our_pod())
        self._foreign_text = _template(self._foreign_pod())
        self._job_text = _template(self._job())
        self._pages: dict[tuple[str, int], bytes] = {}
        self._news: dict[tuple[str, int], bytes] = {}
        self.kinds: dict[str, tuple[int, Callable[[int], str]]] = {
            "nodes": (nodes, self.node),
            "pods": (pods, self.pod),
            "jobs": (self.ours // gang, self.job),
            "deployments": (0, self.job),
            "statefulsets": (0, self.job),
            "cronjobs": (0, self.job),
            "events": (0, self.job),
            "persistentvolumeclaims": (0, self.job),
        }

    def node(self, number: int) -> str:
        """Return one node with eight GPUs."""
        return _filled(self._node_text, number=number, node=number, rack=number // RACK, gang=0, rank=0)

    def pod(self, number: int) -> str:
        """Return one pod: ours come first."""
        ours = number < self.ours
        text = self._our_text if ours else self._foreign_text
        gang, rank = divmod(number, self.gang)
        return _filled(text, number=number, node=number % self.nodes, rack=0, gang=gang, rank=rank)

    def job(self, number: int) -> str:
        """Return one Job of ours."""
        return _filled(self._job_text, number=number, node=0, rack=0, gang=number, rank=0)

    def changes(self, kind: str, count: int) -> bytes:
        """Return events on objects spread over the kind: each has restarted once more."""
        return self._news.get((kind, count)) or b"".join(self._changes(kind, count))

    def _changes(self, kind: str, count: int) -> list[bytes]:
        total, make = self.kinds[kind]
        lines = []
        for step in range(count):
            body = make(step * total // count)
            body = body.replace('"restartCount":0', '"restartCount":1')
            body = body.replace('"resourceVersion":"4', f'"resourceVersion":"9{step:06d}')
            lines.append(f'{{"type":"MODIFIED","object":{body}}}\n'.encode())
        return lines

    def prepare(self) -> None:
        """Make all pages of the usual size, and as many changes of pods as usual."""
        self._news["pods", EVENTS] = b"".join(self._changes("pods", EVENTS))
        for kind, (total, _make) in self.kinds.items():
            for first in range(0, max(total, 1), PAGE):
                self._pages[kind, first] = self._page(kind, first, PAGE)

    def page(self, kind: str, first: int, limit: int) -> bytes:
        """Return one page of a list."""
        return (limit == PAGE and self._pages.get((kind, first))) or self._page(kind, first, limit)

    def _page(self, kind: str, first: int, limit: int) -> bytes:
        total, make = self.kinds[kind]
        last = min(total, first + limit)
        token = f',"continue":"{last}"' if last < total else ""
        items = ",".join(make(number) for number in range(first, last))
        return f'{{"kind":"List","metadata":{{"resourceVersion":"{_LISTED}"{token}}},"items":[{items}]}}'.encode()

    def _labels(self) -> Json:
        key = f"{self._domain}/"
        return {f"{key}installation": self._installation, f"{key}run": "run-@gang@", f"{key}attempt": "1"}

    def _node(self) -> Json:
        offered = {"cpu": "128", "memory": "1056763900Ki", "pods": "110", "nvidia.com/gpu": "8"}
        offered |= {"ephemeral-storage": "3748902456Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
        labels = {
            "kubernetes.io/hostname": "node-@node@",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.product": PRODUCT,
            "nvidia.com/gpu.count": "8",
            "topology/rack": "rack-@rack@",
        }
        labels |= {f"feature.node.kubernetes.io/cpu-cpuid.FLAG{index}": "true" for index in range(40)}
        ready = {"status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
        fine = {"status": "False", "reason": "KubeletHasEnough", "message": "kubelet has enough of it"}
        times = {"lastHeartbeatTime": _SINCE, "lastTransitionTime": _SINCE}
        kinds = ("MemoryPressure", "DiskPressure", "PIDPressure")
        conditions = [{"type": kind, **fine, **times} for kind in kinds] + [{"type": "Ready", **ready, **times}]
        images = [{"names": [f"registry.example/image-{index}:1.{index}"], "sizeBytes": 10**9} for index in range(30)]
        info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.1.3", "osImage": "Linux"}
        status = {"capacity": offered, "allocatable": offered, "conditions": conditions, "nodeInfo": info}
        status["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}]
        status["images"] = images
        return {
            "metadata": _metadata("node", "node-@node@", labels) | {"annotations": {"node.alpha/ttl": "0"}},
            "spec": {"podCIDR": "10.0.0.0/24", "providerID": "example://node-@node@"},
            "status": status,
        }

    def _our_pod(self) -> Json:
        labels = self._labels() | {"batch.kubernetes.io/job-completion-index": "@rank@"}
        metadata = _metadata("pod", "run-@gang@-@rank@", labels) | {"namespace": "team"}
        metadata["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "run-@gang@", "uid": "job-@gang@", "controller": True}
        ]
        requests = {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": str(GPUS)}
        return {"metadata": metadata, **_pod_body("trainer", requests)}

    def _foreign_pod(self) -> Json:
        labels = {"app": "node-exporter", "controller-revision-hash": "6d4b75cb6d", "pod-template-generation": "1"}
        metadata = _metadata("pod", "daemon-@number@", labels) | {"namespace": "monitoring"}
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": "node-exporter",
            "uid": "daemonset",
            "controller": True,
        }
        return {
            "metadata": metadata | {"ownerReferences": [owner]},
            **_pod_body("exporter", {"cpu": "100m", "memory": "200Mi"}),
        }

    def _job(self) -> Json:
        metadata = _metadata("job", "run-@gang@", self._labels()) | {"namespace": "team"}
        spec = {"parallelism": self.gang, "completions": self.gang, "suspend": False, "backoffLimit": 0}
        return {
            "metadata": metadata,
            "spec": spec,
            "status": {"active": self.gang, "ready": self.gang, "startTime": _SINCE},
        }


def _metadata(kind: str, name: str, labels: Json) -> Json:
    fields: Json = {f"f:field-{index}": {".": {}, "f:name": {}, "f:value": {}} for index in range(14)}
    notes = [
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": _SINCE, "fieldsV1": fields}
        for manager in ("kube-controller-manager", "kubelet")
    ]
    return {
        "name": name,
        "uid": f"{kind}-@number@",
        "resourceVersion": "4@number@",
        "creationTimestamp": _SINCE,
        "labels": labels,
        "managedFields": notes,
    }


def _pod_body(name: str, requests: Json) -> Json:
    environment = [{"name": f"SETTING_{index}", "value": f"value-{index}"} for index in range(8)]
    mounts = [{"name": f"volume-{index}", "mountPath": f"/mnt/volume-{index}"} for index in range(3)]
    container = {
        "name": name,
        "image": f"registry.example/{name}:1.0",
        "env": environment,
        "volumeMounts": mounts,
        "resources": {"requests": requests, "limits": requests},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }
    states = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "spec": {
            "nodeName": "node-@node@",
            "containers": [container],
            "volumes": [{"name": f"volume-{index}", "emptyDir": {}} for index in range(3)],
            "tolerations": [{"key": f"example/taint-{index}", "operator": "Exists"} for index in range(6)],
            "restartPolicy": "Never",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
        },
        "status": {
            "phase": "Running",
            "podIP": "10.1.2.3",
            "startTime": _SINCE,
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": _SINCE} for kind in states],
            "containerStatuses": [
                {
                    "name": name,
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": _SINCE}},
                    "image": f"registry.example/{name}:1.0",
                    "imageID": f"registry.example/{name}@sha256:{'0' * 64}",
                    "containerID": f"containerd://{'1' * 64}",
                }
            ],
        },
    }


def _template(body: Json) -> str:
    return json.dumps(body, separators=(",", ":"))


def _filled(text: str, **values: int) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


class Handler(BaseHTTPRequestHandler):
    """GET of lists, page by page, and with `watch` the changes; the path's last part is the kind."""

    protocol_version = "HTTP/1.1"
    supply: Supply
    is_quiet = False
    written: list[Json]

    def do_GET(self) -> None:
        """Answer."""
        parts = urlsplit(self.path)
        kind, query = parts.path.rpartition("/")[2], parse_qs(parts.query)
        if "watch" in query:
            self._stream(kind, int(query["timeoutSeconds"][0]))
        elif kind in ("version", "readyz"):
            self._send(json.dumps(_VERSION).encode())
        elif kind == "written":
            self._send(json.dumps(self.written).encode())
        elif kind in self.supply.kinds:
            first, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["1000000"])[0])
            self._send(self.supply.page(kind, first, limit))
        else:
            self._send(json.dumps(_REFUSED | {"reason": "NotFound", "code": 404}).encode(), status=404)

    def do_POST(self) -> None:
        """Note what somebody wants to change, and refuse it."""
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(text or b"null")
        metadata = body.get("metadata") or {} if isinstance(body, dict) else {}
        self.written.append({"method": self.command, "path": self.path, "name": metadata.get("name", "")})
        self._send(json.dumps(_REFUSED).encode(), status=403)

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 -- so http.server calls them

    def _stream(self, kind: str, seconds: int) -> None:
        if not self.is_quiet:
            self._send(self.supply.changes(kind, seconds))
            return
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        select.select([self.connection], [], [], seconds)  # readable: the reader has gone

    def _send(self, body: bytes, *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve on a free port of the loopback address and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--domain", required=True)
    parser.add_argument("--installation", required=True)
    parser.add_argument("--ours", type=int, help="how many of the pods are ours (default a quarter)")
    parser.add_argument("--gang", type=int, default=GANG, help="workers of a Job")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    sizes = {"ours": args.ours, "gang": args.gang}
    Handler.supply = Supply(args.nodes, args.pods, args.domain, args.installation, **sizes)
    Handler.is_quiet, Handler.written = args.quiet, []
    Handler.supply.prepare()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
