"""Taints of nodes and the tolerations that open them, by Kubernetes' own rules of matching."""

from collections.abc import Mapping, Sequence

Taint = tuple[str, str, str]

# Readiness and cordon are judged by the snapshot's `hold`.
OWN_MEANING = "node.kubernetes.io/"
BINDING = frozenset({"NoSchedule", "NoExecute"})


class TaintSets:
    """Numbers the distinct sets of taints; 0 is the empty set. Every pod of ours opens `tolerated_keys`."""

    def __init__(self, tolerated_keys: frozenset[str]) -> None:
        self._tolerated_keys = tolerated_keys
        self._sets: dict[frozenset[Taint], int] = {frozenset(): 0}

    def index_of(self, taints: Sequence[Mapping[str, str]]) -> int:
        """Return the number of a node's set of taints that bind."""
        binding = frozenset(
            (taint["key"], taint.get("value") or "", taint["effect"])
            for taint in taints
            if taint["effect"] in BINDING
            and taint["key"] not in self._tolerated_keys
            and not taint["key"].startswith(OWN_MEANING)
        )
        return self._sets.setdefault(binding, len(self._sets))

    def tolerated(self, tolerations: Sequence[Mapping[str, str]]) -> frozenset[int]:
        """Return the numbers of all sets that these tolerations open whole."""
        return frozenset(
            index
            for taints, index in self._sets.items()
            if all(any(_opens(toleration, taint) for toleration in tolerations) for taint in taints)
        )


def _opens(toleration: Mapping[str, str], taint: Taint) -> bool:
    key, value, effect = taint
    if toleration.get("effect") and toleration["effect"] != effect:
        return False
    if toleration.get("operator") == "Exists":
        # An empty key with Exists matches every taint.
        return toleration.get("key", "") in ("", key)
    return toleration.get("key") == key and toleration.get("value", "") == value
