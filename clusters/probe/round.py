"""One round of checks of one cluster: ask, judge, write. Nothing is asked of a cluster inside a transaction."""

from collections.abc import Callable, Collection, Iterable, Iterator

from django.conf import settings

from clusters.k8s.gateway import Gateway
from clusters.k8s.values import GatewayError, Unreachable
from clusters.models import Cluster, Node, ResourceFlavor, Severity
from clusters.probe import access, policy, renewal, server, supply
from clusters.probe.canary import Canary, Pause
from clusters.probe.groups import Groups
from clusters.services.findings import GROUPS, POLICY, Finding, write_findings
from portal.core import clock
from portal.identity.selectors import team_namespaces

Check = Callable[[], Finding]


class Round:
    """The checks of one cluster, over its gateway. `pause` waits, and says whether to go on."""

    def __init__(self, cluster: Cluster, gateway: Gateway, pause: Pause) -> None:
        self._cluster = cluster
        self._gateway = gateway
        self._pause = pause
        self._domain = settings.MUSTER_DOMAIN
        # Whether the account may renew its token, as far as it was asked.
        self._may_renew: bool | None = None
        self._user = ""

    def whole(self) -> None:
        """Make all checks and write what they found. Raise Unreachable when the cluster does not answer.

        Then only what needs no answer is written: what was found before is worth more than that nothing is known.
        """
        try:
            findings = [*self._asked(), *self.of_nodes()]
        except Unreachable:
            self.write([self.of_token()], is_whole_round=False)
            raise
        self.write(findings, is_whole_round=True)

    def write(self, findings: list[Finding], *, is_whole_round: bool) -> None:
        """Write findings, unless the round was stopped meanwhile: the rows are those of whoever watches next."""
        if self._pause(0):
            write_findings(cluster=self._cluster, findings=findings, is_whole_round=is_whole_round)

    def of_policy(self) -> Finding:
        """Look at the policy alone. Raise Unreachable when the cluster does not answer."""
        return _checked(POLICY, lambda: policy.look(self._gateway, self._domain))

    def of_nodes(self) -> list[Finding]:
        """Judge the nodes that are in the rows: nobody is asked."""
        rows = Node.objects.filter(cluster=self._cluster, gone_at=None)
        if not rows.exists():
            return [Finding(code, Severity.UNKNOWN) for code in ("accelerators", "topology", "taint")]
        selectors = [
            supply.Selector(*row)
            for row in ResourceFlavor.objects.values_list("resource_name", "label_key", "label_value")
        ]
        machines = supply.with_accelerators(_machines(rows.values_list("labels", "extended", "taints")), selectors)
        levels = [(level.name, level.label_key) for level in self._cluster.levels.all()]
        return [
            supply.accelerators(machines, selectors),
            supply.topology(machines, levels),
            supply.taint(machines, self._domain),
        ]

    def of_token(self) -> Finding:
        """Judge the token by what it says of itself."""
        return access.token(self._cluster.token, clock.now(), renews=self._may_renew, user=self._user)

    def renew_token(self) -> None:
        """Renew the token if it is due and the account may do that. Raise Unreachable.

        The watcher starts anew with the new token.
        """
        if not access.is_due(self._cluster.token, clock.now()):
            return
        current = Cluster.objects.get(pk=self._cluster.pk)
        if (current.token, current.server) != (self._cluster.token, self._cluster.server):
            return
        _checked("token", lambda: self._renewed(current))

    def _asked(self) -> Iterator[Finding]:
        namespaces = team_namespaces()
        yield _checked("version", lambda: server.version(self._gateway.version()))
        yield _checked("clock", self._clock)
        yield _checked("rights", lambda: access.rights(self._gateway, namespaces))
        yield _checked("token", self._token)
        yield self.of_policy()
        yield from self._engines(namespaces)
        canary = Canary(self._gateway, self._domain, settings.MUSTER_INSTALLATION, self._pause)
        yield _checked("canary", lambda: canary.fly(namespaces))

    def _engines(self, namespaces: Collection[str]) -> Iterator[Finding]:
        try:
            known = self._gateway.group_versions()
        except Unreachable:
            raise
        except GatewayError as error:
            yield from (_unknown(code, error) for code in (GROUPS, "engines"))
            return
        groups = Groups(self._gateway, self._domain, settings.MUSTER_INSTALLATION)
        yield _checked(GROUPS, lambda: groups.look(known, namespaces))
        yield server.engines(known)

    def _clock(self) -> Finding:
        before = clock.now()
        told = self._gateway.date()
        return server.clock_skew(told, before, clock.now())

    def _token(self) -> Finding:
        self._user = self._gateway.user_name()
        self._may_renew = access.may_renew(self._gateway, self._user)
        return self.of_token()

    def _renewed(self, current: Cluster) -> Finding:
        finding = self._token()
        if self._may_renew:
            renewal.renew(current, self._gateway)
        return finding


def _checked(code: str, check: Check) -> Finding:
    """Make one check: a cluster that refuses to answer it stops no other. Raise Unreachable."""
    try:
        return check()
    except Unreachable:
        raise
    except GatewayError as error:
        return _unknown(code, error)


def _unknown(code: str, error: GatewayError) -> Finding:
    return Finding(code, Severity.UNKNOWN, {"error": error.message[:300]})


def _machines(rows: Iterable[tuple[dict[str, str], dict[str, int], list[dict[str, str]]]]) -> Iterator[supply.Machine]:
    for labels, extended, taints in rows:
        yield supply.Machine(labels, extended, frozenset(each.get("key", "") for each in taints))
