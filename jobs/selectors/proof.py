"""What a run that stops still waits for: GPUs are given back when the cluster proves that their pods are gone."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from jobs.selectors.placement import AttemptPlace, RankPlace

# The reason of a run that stops, beside those that the scheduler gives.
AWAITING_PROOF = "awaiting_proof"


@dataclass(frozen=True, slots=True)
class Awaited:
    """Pods that are not proven gone, the whole GPUs held meanwhile, and the nodes that cannot prove it alone."""

    pods: int
    gpus: int
    silent_nodes: tuple[str, ...]

    def sentences(self) -> tuple[str, ...]:
        """Say what is awaited and, where nobody but an administrator can end the wait, by what."""
        numbers = {"pods": self.pods, "gpus": self.gpus}
        held = (
            _("Its %(gpus)d GPUs stay held until the cluster proves that its pods are gone (%(pods)d left).") % numbers
        )
        return held, *(_silence(node) for node in self.silent_nodes)


def awaited_by(place: AttemptPlace) -> Awaited:
    """Return what the end of this attempt waits for."""
    left = [rank for rank in place.ranks if _is_there(rank)]
    silent = sorted({rank.node for rank in left if not rank.is_node_ready})
    return Awaited(pods=len(left), gpus=sum(rank.gpus for rank in place.ranks), silent_nodes=tuple(silent))


def _is_there(rank: RankPlace) -> bool:
    return bool(rank.pod) and rank.phase not in ("Succeeded", "Failed")


def _silence(node: str) -> str:
    return _(
        "Node %(node)s does not answer, and a pod may still run on it: its GPUs are free when it answers again, or "
        "when an administrator deletes the node from the cluster."
    ) % {"node": node}
