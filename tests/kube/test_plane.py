"""The control plane itself: what the portal's account may do on it, and that nothing is left of it."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from clusters.k8s import kubeconfig
from clusters.k8s.gateway import Gateway
from clusters.manifests import rights
from portal.core.errors import InvalidInputError
from portal.embedded.processes import tied
from tests.contract.objects import wait_for
from tests.kube.build import VERSIONS
from tests.kube.fleet import TEAMS
from tests.kube.plane import ORDER, ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).resolve().parents[2]
# What a portal that was broken into must not be able to do, in no namespace. Pods it makes for quick runs, in those of
# teams alone.
NEVER = (
    ("get", "", "secrets"),
    ("list", "", "secrets"),
    ("create", "", "pods/exec"),
    ("create", "", "pods/binding"),
    ("create", "", "serviceaccounts/token"),
    ("patch", "", "nodes"),
    ("delete", "", "nodes"),
    ("delete", "", "namespaces"),
    ("impersonate", "", "users"),
    ("create", "rbac.authorization.k8s.io", "rolebindings"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
)


def may(plane: ControlPlane, verb: str, group: str, resource: str, namespace: str = "") -> bool:
    """What the API server says about a right of the portal's account."""
    kind, _slash, sub = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": kind, "subresource": sub, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{rights.NAMESPACE}:{rights.ACCOUNT}",
            "resourceAttributes": attributes,
        },
    }
    status, answer = plane.admin.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    assert status == 201, answer
    return bool(answer["status"]["allowed"])


def granted(table: tuple[rights.Right, ...]) -> list[tuple[str, str, str]]:
    """Each verb, group and kind of a table."""
    return [(verb, each.group, kind) for each in table for kind in each.resources for verb in each.verbs]


def test_the_portals_account_reads_everywhere_and_writes_in_teams_alone(kube_plane: ControlPlane) -> None:
    for right in granted(rights.EVERYWHERE):
        assert may(kube_plane, *right), right
    for right in granted(rights.IN_TEAMS):
        assert [may(kube_plane, *right, team) for team in TEAMS] == [True] * len(TEAMS), right
        assert not may(kube_plane, *right, "kube-system"), right


def test_the_portals_account_never_gets_beyond_its_jobs(kube_plane: ControlPlane) -> None:
    for right in NEVER:
        assert not may(kube_plane, *right), right
        assert not may(kube_plane, *right, TEAMS[0]), right
    assert not may(kube_plane, "create", "", "pods")
    assert not may(kube_plane, "create", "", "pods", rights.NAMESPACE)


def test_the_kubeconfig_is_private_and_the_portal_takes_it(kube_plane: ControlPlane) -> None:
    assert stat.S_IMODE(kube_plane.kubeconfig.stat().st_mode) == 0o600

    connection = kubeconfig.parse(kube_plane.kubeconfig.read_text())

    with Gateway(connection) as gateway:
        assert gateway.version()["gitVersion"] == VERSIONS[kube_plane.version]


def test_the_administrators_kubeconfig_is_refused(kube_plane: ControlPlane) -> None:
    with pytest.raises(InvalidInputError):
        kubeconfig.parse(kube_plane.admin_kubeconfig.read_text())


def test_nobody_gets_in_without_a_credential(kube_plane: ControlPlane) -> None:
    connection = kubeconfig.parse(kube_plane.kubeconfig.read_text())
    stranger = type(connection)(server=connection.server, ca_data=connection.ca_data, token="guessed")

    with Gateway(stranger) as gateway, pytest.raises(Exception, match="Unauthorized"):
        gateway.list("pods")


def test_nodes_show_product_memory_mig_and_topology(kube_plane: ControlPlane) -> None:
    nodes = kube_plane.admin.items("Node")
    whole = [node for node in nodes if "nvidia.com/gpu" in node["status"]["allocatable"]]
    (cut,) = [node for node in nodes if "nvidia.com/mig-1g.10gb" in node["status"]["allocatable"]]

    assert {node["metadata"]["labels"]["nvidia.com/gpu.product"] for node in whole} == {
        "NVIDIA-H100-80GB-HBM3",
        "NVIDIA-A100-SXM4-80GB",
        "NVIDIA-L40S",
    }
    assert all(node["status"]["allocatable"]["nvidia.com/gpu"] == "8" for node in whole)
    assert cut["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] == "56"
    assert all(node["metadata"]["labels"]["muster.example/rack"] for node in nodes)


@pytest.fixture
def command() -> "subprocess.Popen[str]":
    """`./run kube` of its own, small."""
    words = tied([sys.executable, "-m", "tests.kube", "--nodes", "2"], death_signal=signal.SIGKILL)
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_ctrl_c_stops_every_part_and_leaves_nothing(command: "subprocess.Popen[str]") -> None:
    folder = folder_of(command)
    assert set(parts_in(folder)) == set(ORDER)

    command.send_signal(signal.SIGINT)

    # An API server that outlives its etcd would hang for a minute.
    assert command.wait(timeout=30) == 0
    assert parts_in(folder) == {}
    assert not folder.exists()


def test_a_killed_command_leaves_no_process(command: "subprocess.Popen[str]") -> None:
    folder = folder_of(command)
    assert set(parts_in(folder)) == set(ORDER)

    command.kill()
    command.wait(timeout=10)

    wait_for(lambda: not parts_in(folder), "every part is gone", timeout_s=10)


def folder_of(command: "subprocess.Popen[str]") -> Path:
    """Where the command keeps its data, once it is ready."""
    assert command.stdout is not None
    folder: Path | None = None
    for line in command.stdout:
        if found := re.search(r"account: (\S+)", line):
            folder = Path(found[1]).parent
        if "Ctrl-C" in line:
            break
    assert folder is not None
    return folder


def parts_in(folder: Path) -> dict[str, int]:
    """Processes by name whose command line names the folder."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(os.fsencode(folder) in word for word in words[1:]):
            found[os.fsdecode(words[0]).rpartition("/")[2]] = int(each.parent.name)
    return found
