"""The administrator of a control plane of ours: HTTP with a client certificate, for what the portal may not do."""

import ssl
from pathlib import Path
from typing import Any

import httpx

Json = dict[str, Any]

# Where each kind lives, and whether in a namespace.
PATHS = {
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "Pod": ("/api/v1", "pods", True),
    "ResourceQuota": ("/api/v1", "resourcequotas", True),
    "LimitRange": ("/api/v1", "limitranges", True),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies", True),
    "Service": ("/api/v1", "services", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "Job": ("/apis/batch/v1", "jobs", True),
    "CronJob": ("/apis/batch/v1", "cronjobs", True),
    "Deployment": ("/apis/apps/v1", "deployments", True),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", True),
    "Event": ("/api/v1", "events", True),
    "MutatingAdmissionPolicy": ("/apis/admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", False),
    "MutatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1",
        "mutatingadmissionpolicybindings",
        False,
    ),
    "ValidatingAdmissionPolicy": ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
        False,
    ),
    "PodGroup": ("/apis/scheduling.k8s.io/v1beta1", "podgroups", True),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles", True),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", True),
}


class Admin:
    """Every right on one API server."""

    def __init__(self, server: str, certificates: Path) -> None:
        context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        context.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        self._http = httpx.Client(base_url=server, verify=context, trust_env=False, timeout=10)

    def close(self) -> None:
        """Drop the kept connections."""
        self._http.close()

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready."""
        try:
            return self._http.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def request(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", timeout_s: float = 10
    ) -> tuple[int, Any]:
        """One request: status code and decoded JSON."""
        answer = self._http.request(method, path, json=body, headers={"Content-Type": kind}, timeout=timeout_s)
        return answer.status_code, answer.json()

    def create(self, body: Json) -> Json:
        """Create an object and return it as stored."""
        metadata = body["metadata"]
        status, answer = self.request("POST", path_of(body["kind"], metadata.get("namespace", "")), body)
        assert status == 201, answer
        made: Json = answer
        return made

    def apply(self, path: str, body: Json) -> None:
        """Create an object of any kind; one that is there already stays as it is."""
        status, answer = self.request("POST", path, body)
        assert status in (201, 409), answer

    def text(self, path: str) -> str:
        """What stands at a path that answers with plain text."""
        answer = self._http.get(path, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.text

    def items(self, kind: str, namespace: str = "", *, labels: str = "") -> list[Json]:
        """All objects of a kind."""
        status, answer = self.request("GET", f"{path_of(kind, namespace)}?labelSelector={labels}")
        assert status == 200, answer
        return list(answer["items"] or ())

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; one that is not there is no error."""
        status, answer = self.request("DELETE", f"{path_of(kind, namespace)}/{name}", {})
        assert status in (200, 202, 404), answer

    def delete_all(self, kind: str, namespace: str) -> None:
        """Ask for the deletion of all objects of a kind, and of what they own."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        status, answer = self.request("DELETE", path_of(kind, namespace), options, timeout_s=60)
        assert status == 200, answer

    def token_of(self, namespace: str, account: str, *, hours: int = 24) -> str:
        """A token of a service account, by TokenRequest."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        spec = {"expirationSeconds": hours * 3600}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        status, answer = self.request("POST", path, {**body, "spec": spec})
        assert status == 201, answer
        return str(answer["status"]["token"])


def path_of(kind: str, namespace: str = "") -> str:
    """Where the objects of a kind are."""
    prefix, plural, is_namespaced = PATHS[kind]
    return f"{prefix}/namespaces/{namespace}/{plural}" if is_namespaced and namespace else f"{prefix}/{plural}"
