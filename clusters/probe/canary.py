"""The whole way of a run in small: a gated Job without a GPU is made, opened, touched and deleted, and never released.

It shows what no question about rights can: a webhook or a quota that refuses our Jobs or pods, a Job controller that
makes none, and how long the cluster takes to answer.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import (
    AlreadyExists,
    Conflict,
    GatewayError,
    Invalid,
    JsonObject,
    NotFound,
    Refused,
    RightMissing,
    Unreachable,
)
from clusters.manifests import canary, names, patches
from clusters.models import Severity
from clusters.services.findings import Finding

GATHER_S = 20.0
GONE_S = 30.0
LOOK_S = 0.2
_LONGEST_TEXT = 600

# Waits for so many seconds; false when the process ends meanwhile.
Pause = Callable[[float], bool]


class _Ended(Exception):  # noqa: N818 -- not an error
    """The way ended early, with this finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.code)
        self.finding = finding


@dataclass
class Canary:
    """One flight in a team's namespace; `domain` and `installation` are those of our labels."""

    gateway: Gateway
    domain: str
    installation: str
    pause: Pause
    _times: dict[str, int] = field(default_factory=dict)

    def fly(self, namespaces: Iterable[str]) -> Finding:
        """Fly in the first namespace that is there. Raise Unreachable when the cluster falls silent."""
        absent = []
        for namespace in namespaces:
            try:
                return self._fly(namespace)
            except NotFound:
                absent.append(namespace)
            except _Ended as ended:
                return ended.finding
        if not absent:
            return Finding("canary", Severity.UNKNOWN, {"is": "no_team"})
        return Finding("canary", Severity.WARNING, {"is": "no_namespace", "namespaces": absent[:10]})

    def _fly(self, namespace: str) -> Finding:
        with self._step(namespace, "create"):
            made = self._create(namespace)
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        try:
            with self._step(namespace, "open"):
                self.gateway.patch_json("jobs", namespace, name, patches.unsuspend(uid))
            pod = self._gathered(namespace, name, uid)
            with self._step(namespace, "patch"):
                touched = canary.touch(pod["metadata"]["uid"], self.domain)
                self.gateway.patch_json("pods", namespace, pod["metadata"]["name"], touched)
        except (_Ended, GatewayError):
            with suppress(GatewayError):
                self.gateway.delete("jobs", namespace, name, uid=uid)
            raise
        with self._step(namespace, "delete"):
            self.gateway.delete("jobs", namespace, name, uid=uid)
        self._prove_gone(namespace, name)
        return Finding("canary", Severity.OK, {"is": "ok", "namespace": namespace, "ms": self._times})

    def _create(self, namespace: str) -> JsonObject:
        body = canary.job(namespace, self.installation, self.domain)
        try:
            return self.gateway.create("jobs", namespace, body)
        except AlreadyExists:
            self._clear(namespace, body["metadata"]["name"])
            return self.gateway.create("jobs", namespace, body)

    def _clear(self, namespace: str, name: str) -> None:
        """Delete what an earlier flight left behind; a Job of that name that is no canary is not ours to touch."""
        with suppress(NotFound):
            left = self.gateway.get("jobs", namespace, name)
            if canary.mark(self.domain) not in (left["metadata"].get("labels") or {}):
                raise _Ended(_refused(namespace, "create", f"{name} exists and is not ours"))
            self.gateway.delete("jobs", namespace, name, uid=left["metadata"]["uid"])
            self._prove_gone(namespace, name)

    def _gathered(self, namespace: str, name: str, uid: str) -> JsonObject:
        """Wait for the pod at our gate."""
        began = time.monotonic()
        for _look in self._until(GATHER_S):
            pods = self._pods(namespace, name)
            if pods and names.is_gated(pods[0], self.domain):
                self._times["pod"] = _ms(began)
                return pods[0]
            if pods:
                text = ", ".join(each["name"] for each in pods[0]["spec"].get("schedulingGates") or [])
                raise _Ended(_refused(namespace, "gate", text))
        raise _Ended(_refused(namespace, "pod", self._warning(namespace, uid)))

    def _prove_gone(self, namespace: str, name: str) -> None:
        began = time.monotonic()
        for _look in self._until(GONE_S):
            try:
                self.gateway.get("jobs", namespace, name)
            except NotFound:
                if not self._pods(namespace, name):
                    self._times["gone"] = _ms(began)
                    return
        raise _Ended(Finding("canary", Severity.PROBLEM, {"is": "stays", "namespace": namespace, "name": name}))

    def _pods(self, namespace: str, name: str) -> list[JsonObject]:
        labels = f"{names.JOB_NAME_LABEL}={name},{canary.mark(self.domain)}"
        found: list[JsonObject] = self.gateway.list("pods", namespace, labels=labels)["items"]
        return found

    def _warning(self, namespace: str, uid: str) -> str:
        """What the Job controller was told when it made no pod."""
        listed = self.gateway.list("events", namespace, fields=f"involvedObject.uid={uid},type=Warning")
        return next((str(each.get("message") or "") for each in reversed(listed["items"])), "")

    def _until(self, seconds: float) -> Iterator[None]:
        """Look again and again until the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield
            if not self.pause(LOOK_S):
                raise Unreachable("the portal ends")

    @contextmanager
    def _step(self, namespace: str, word: str) -> Iterator[None]:
        """Take the time, and turn a refusal into a finding."""
        began = time.monotonic()
        try:
            yield
        except RightMissing as error:
            raise _Ended(_refused(namespace, word, error.message, is_right=True)) from error
        except (Refused, Invalid, Conflict) as error:
            raise _Ended(_refused(namespace, word, error.message)) from error
        self._times[word] = _ms(began)


def _refused(namespace: str, step: str, text: str, *, is_right: bool = False) -> Finding:
    # A quota that is used up is the team's own, and passes.
    severity = Severity.WARNING if "exceeded quota" in text else Severity.PROBLEM
    numbers = {"namespace": namespace, "step": step, "text": text[:_LONGEST_TEXT], "is_right": is_right}
    return Finding("canary", severity, {"is": "refused", **numbers})


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
