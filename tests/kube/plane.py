"""One real control plane: etcd, API server, controller manager, scheduler, and KWOK in the place of kubelets.

    with running_plane("kube1", nodes=8) as plane:
        plane.server, plane.ca, plane.token      # the portal's own, least-privilege account
        plane.kubeconfig                         # the same as a file (0600), to register it
        plane.admin.create({...})                # everything else

Everything listens on the loopback interface, behind TLS, on ports that were free. Every process is killed by the
kernel when we are; its data lies in a folder of its own that is gone afterwards.
"""

import base64
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from clusters.manifests import rights
from portal.embedded.folder import write_private
from portal.embedded.guard import Guard
from portal.embedded.processes import end, has_ended, spawn, sweep
from tests.kube.admin import Admin, Json
from tests.kube.build import binaries
from tests.kube.certificates import Authority
from tests.kube.fleet import furniture

STAGES = Path(__file__).resolve().parent / "stages.yaml"
FOLDER_PREFIX = "muster-kube-"
# The order of the start. The stop goes backwards: an API server whose etcd is gone hangs and keeps its port.
ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
# The form is the container runtime's.
PRINTED = "2026-01-01T00:00:00.000000000Z stdout F KWOK runs no program: each of its pods prints this line\n"
_STOP_S = 10.0
_START_S = 60.0
_LEASE_S = 40
# By version: what a cluster has to switch on to bind gangs whole. On all parts, and the API at the server.
GATES = {"1.37": "GenericWorkload=true"}
APIS = {"1.37": "scheduling.k8s.io/v1beta1=true"}
# The defaults (20 a second) would let a gang of 512 wait for half a minute.
_QPS, _BURST = 1_000, 2_000


class PlaneError(Exception):
    """A part of the control plane did not start, or ended."""


class ControlPlane:
    """A control plane with its data in `folder`. Start and stop it in the main thread."""

    def __init__(
        self, folder: Path, name: str, *, version: str = "1.36", nodes: int = 16, default_run_s: float = 20
    ) -> None:
        self.name, self.version, self.folder = name, version, folder
        self._nodes, self._default_run_s = nodes, default_run_s
        # Whether the scheduler binds gangs whole, where it can. For a change stop the parts and start them again.
        self.has_pod_groups = True
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._guard: Guard | None = None
        self._etcd, self._peer, self._api, self._kubelet = _free_ports(4)
        self.server = f"https://127.0.0.1:{self._api}"
        self.token = ""
        self._certificates = folder / "certificates"
        self.ca = self._issue_certificates().pem
        self.admin = Admin(self.server, self._certificates)

    @property
    def kubeconfig(self) -> Path:
        """The portal's account, as an administrator would hand it over."""
        return self.folder / f"{self.name}.kubeconfig"

    @property
    def admin_kubeconfig(self) -> Path:
        """Every right, for kubectl."""
        return self.folder / f"{self.name}-admin.kubeconfig"

    def start(self) -> None:
        """Start everything, furnish it, and wait until its nodes are ready."""
        self._paths = binaries(self.version)
        self._guard = Guard(grace_s=2)
        self._write_files()
        self._spawn("etcd", *self._etcd_flags())
        self._spawn("kube-apiserver", *self._api_flags())
        self._wait(self.admin.is_ready, "the API server is ready")
        for name, flags in self._controller_flags().items():
            self._spawn(name, *flags)
        for body in furniture(self.name, self._nodes):
            self.admin.create(body)
        self.token = self.admin.token_of(rights.NAMESPACE, rights.ACCOUNT)
        write_private(self.kubeconfig, self._kubeconfig_of("muster", {"token": self.token}))
        self._wait(self._is_furnished, "the nodes are ready")

    def stop(self) -> None:
        """End everything, etcd last."""
        for name in reversed(ORDER):
            if name in self._processes:
                self.stop_part(name)
        self.admin.close()
        if self._guard:
            self._guard.close()

    def ended(self) -> str:
        """The name of a part that has ended by itself, if any."""
        return next((name for name, process in self._processes.items() if has_ended(process)), "")

    def stop_part(self, name: str) -> None:
        """Stop one part."""
        process = self._processes.pop(name)
        end(process, by=signal.SIGTERM, timeout_s=_STOP_S)
        if self._guard:
            self._guard.remove(process.pid)

    def start_part(self, name: str) -> None:
        """Start a part that was stopped, with the flags that it had."""
        flags = {"etcd": self._etcd_flags, "kube-apiserver": self._api_flags}
        self._spawn(name, *(flags[name]() if name in flags else self._controller_flags()[name]))
        self._wait(self.admin.is_ready, "the API server is ready")

    def freeze_part(self, name: str) -> None:
        """Let a part keep its connections and answer nothing any more."""
        os.killpg(self._processes[name].pid, signal.SIGSTOP)

    def thaw_part(self, name: str) -> None:
        """Let it go on."""
        os.killpg(self._processes[name].pid, signal.SIGCONT)

    def kill_part(self, name: str) -> None:
        """End a part at once, as a crash does; `start_part` starts it again."""
        process = self._processes.pop(name)
        sweep(process)
        if self._guard:
            self._guard.remove(process.pid)

    def open_namespace(self, name: str) -> None:
        """Make a namespace in which the portal may work."""
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.admin.create(rights.team_binding(name))

    def log_of(self, name: str) -> Path:
        """What a part wrote."""
        return self.folder / f"{name}.log"

    def _issue_certificates(self) -> Authority:
        self._certificates.mkdir(mode=0o700)
        authority = Authority(self._certificates)
        authority.issue("serving", "kube-apiserver")
        authority.issue("admin", "admin", group="system:masters")
        authority.issue("kube-controller-manager", "system:kube-controller-manager")
        authority.issue("kube-scheduler", "system:kube-scheduler")
        authority.issue("kwok", "kwok", group="system:masters")
        authority.make_key_pair("accounts")
        return authority

    def _write_files(self) -> None:
        for user in ("admin", "kube-controller-manager", "kube-scheduler", "kwok"):
            file = self.admin_kubeconfig if user == "admin" else self.folder / f"{user}.kubeconfig"
            certificate, key = self._base64(f"{user}.crt"), self._base64(f"{user}.key")
            credentials = {"client-certificate-data": certificate, "client-key-data": key}
            write_private(file, self._kubeconfig_of(user, credentials))
        printed = self.folder / "printed.log"
        printed.write_text(PRINTED)
        stages = STAGES.read_text().replace("DEFAULT_RUN_MS", str(int(self._default_run_s * 1000)))
        (self.folder / "stages.yaml").write_text(stages.replace("LOGS_FILE", str(printed)))
        (self.folder / "scheduler.yaml").write_text(yaml.safe_dump(self._scheduler_config()))

    def _etcd_flags(self) -> list[str]:
        client, peer = f"https://127.0.0.1:{self._etcd}", f"https://127.0.0.1:{self._peer}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            *self._etcd_tls(""),
            *self._etcd_tls("peer-"),
        ]

    def _etcd_tls(self, prefix: str) -> list[str]:
        # The store holds every token: who is on this machine must not read it.
        files = {"cert-file": "serving.crt", "key-file": "serving.key", "trusted-ca-file": "ca.crt"}
        return [
            *(f"--{prefix}{flag}={self._certificates / file}" for flag, file in files.items()),
            f"--{prefix}client-cert-auth",
        ]

    def _api_flags(self) -> list[str]:
        at = self._certificates
        return [
            f"--etcd-servers=https://127.0.0.1:{self._etcd}",
            f"--etcd-cafile={at / 'ca.crt'}",
            f"--etcd-certfile={at / 'serving.crt'}",
            f"--etcd-keyfile={at / 'serving.key'}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._api}",
            f"--tls-cert-file={at / 'serving.crt'}",
            f"--tls-private-key-file={at / 'serving.key'}",
            f"--client-ca-file={at / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={at / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={at / 'accounts.pub'}",
            f"--service-account-signing-key-file={at / 'accounts.key'}",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--shutdown-delay-duration=0s",
            *([f"--runtime-config={APIS[self.version]}"] if self.version in APIS else ()),
            *self._gates(),
        ]

    def _gates(self) -> list[str]:
        gates = GATES.get(self.version)
        return [f"--feature-gates={gates}"] if gates and self.has_pod_groups else []

    def _controller_flags(self) -> dict[str, list[str]]:
        at = self._certificates
        return {
            "kube-controller-manager": [
                f"--kubeconfig={self.folder / 'kube-controller-manager.kubeconfig'}",
                # The controllers' real accounts, by which policies tell them apart.
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={at / 'accounts.key'}",
                f"--root-ca-file={at / 'ca.crt'}",
                "--leader-elect=false",
                "--secure-port=0",
                f"--kube-api-qps={_QPS}",
                f"--kube-api-burst={_BURST}",
                *self._gates(),
            ],
            "kube-scheduler": [f"--config={self.folder / 'scheduler.yaml'}", "--secure-port=0", *self._gates()],
            "kwok": [
                f"--kubeconfig={self.folder / 'kwok.kubeconfig'}",
                "--manage-all-nodes=true",
                f"--node-lease-duration-seconds={_LEASE_S}",
                f"--config={self.folder / 'stages.yaml'}",
                "--node-ip=127.0.0.1",
                f"--node-port={self._kubelet}",
                f"--server-address=127.0.0.1:{self._kubelet}",
                f"--tls-cert-file={at / 'serving.crt'}",
                f"--tls-private-key-file={at / 'serving.key'}",
            ],
        }

    def _scheduler_config(self) -> Json:
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(self.folder / "kube-scheduler.kubeconfig"),
                "qps": _QPS,
                "burst": _BURST,
            },
        }

    def _kubeconfig_of(self, user: str, credentials: Json) -> str:
        cluster = {"server": self.server, "certificate-authority-data": self._base64("ca.crt")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
        }
        return yaml.safe_dump(document)

    def _base64(self, file: str) -> str:
        return base64.b64encode((self._certificates / file).read_bytes()).decode()

    def _spawn(self, name: str, *flags: str) -> None:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        command = [str(self._paths[name]), *flags]
        # Killed, not asked: asked all at once they would wait for each other, and the data is of no use afterwards.
        process = spawn(command, log=self.log_of(name), env=env, cwd=self.folder, death_signal=signal.SIGKILL)
        self._processes[name] = process
        if self._guard:
            self._guard.add(process.pid)

    def _is_furnished(self) -> bool:
        nodes = self.admin.items("Node")
        claims = self.admin.items("PersistentVolumeClaim")
        return all(_is_usable(node) for node in nodes) and all(each["status"]["phase"] == "Bound" for each in claims)

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _START_S
        while not probe():
            if name := self.ended():
                raise PlaneError(f"{name} ended: {self._tail(name)}")
            if time.monotonic() > deadline:
                raise PlaneError(f"not within {_START_S:.0f} s: {what}\n{self._tail('kube-apiserver')}")
            time.sleep(0.05)

    def _tail(self, name: str) -> str:
        return self.log_of(name).read_text(errors="replace")[-2000:]


@contextmanager
def running_plane(
    name: str = "kube1", *, version: str = "1.36", nodes: int = 16, default_run_s: float = 20
) -> Iterator[ControlPlane]:
    """A control plane that lives as long as the block."""
    with scratch_folder() as folder:
        plane = ControlPlane(folder, name, version=version, nodes=nodes, default_run_s=default_run_s)
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private folder that is removed afterwards, or by the next run where we were killed."""
    base = Path(tempfile.gettempdir())
    with ExitStack() as stack:
        # Hidden until it is locked: another run would take it for a left-over.
        hidden = Path(tempfile.mkdtemp(prefix=f".{FOLDER_PREFIX}", dir=base))
        lock = stack.enter_context((hidden / "lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = hidden.rename(base / hidden.name[1:])
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        _remove_left_overs(base)
        yield folder


def _remove_left_overs(base: Path) -> None:
    for lock in base.glob(f"{FOLDER_PREFIX}*/lock"):
        if lock.stat().st_uid != os.getuid():
            continue
        with lock.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # somebody's who lives
            shutil.rmtree(lock.parent, ignore_errors=True)


def _is_usable(node: Json) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions") or ())
    waits = any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints") or ())
    return ready and not waits


def _free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _each in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
