"""Switches that make the cluster misbehave: outages, latency, lost answers, forced GPU values."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class LostReply:
    """Executes the next request that fits, then closes the connection without an answer."""

    method: str
    kind: str


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody wants to do. `resource` is a plural, with its subresource: "pods/log"."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


@dataclass(slots=True)
class Failures:
    latency_s: float = 0.0
    outage_until: float = 0.0
    # Until then nobody has any right, as on a server that has just started and has not read its roles.
    rightless_until: float = 0.0
    # What nobody may do: field of an act -> value; a field that is left out stands for any.
    denied: list[dict[str, str]] = field(default_factory=list)
    # How far the clock of the API server is ahead of the world's.
    clock_ahead_s: float = 0.0
    lost_replies: list[LostReply] = field(default_factory=list)
    silent_exporters: set[str] = field(default_factory=set)
    all_exporters_silent: bool = False
    # (node, GPU index) -> metric name -> value
    forced: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    # Whether a watch from a compacted version is refused by HTTP status instead of an event in the stream.
    gone_by_status: bool = False
    # Whether lists without items carry `null`, as real servers sometimes answer.
    null_lists: bool = False

    def api_is_out(self) -> bool:
        return asyncio.get_running_loop().time() < self.outage_until

    def start_outage(self, seconds: float) -> None:
        self.outage_until = asyncio.get_running_loop().time() + seconds

    def denies(self, act: Act) -> bool:
        """Whether the authorizer says no, in a review as well as in earnest."""
        if not self.has_read_its_roles():
            return True
        return any(all(getattr(act, key) == value for key, value in rule.items()) for rule in self.denied)

    def has_read_its_roles(self) -> bool:
        """A server is not ready before."""
        return asyncio.get_running_loop().time() >= self.rightless_until

    def forget_rights(self, seconds: float) -> None:
        self.rightless_until = asyncio.get_running_loop().time() + seconds

    def takes_reply(self, method: str, kind: str) -> bool:
        """Whether this answer must be lost; each order counts once."""
        for lost in self.lost_replies:
            if lost.method == method and lost.kind == kind:
                self.lost_replies.remove(lost)
                return True
        return False

    def exporter_is_silent(self, node: str) -> bool:
        return self.all_exporters_silent or node in self.silent_exporters
