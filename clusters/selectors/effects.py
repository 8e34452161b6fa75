"""What a maintenance does to what runs on a node, as the floor above says it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """One run on the node: what happens to it, and what that loses. An empty `url`: the person may not see it."""

    label: str
    url: str
    gpus: int
    what: str
    lost_gpu_hours: float | None = None
