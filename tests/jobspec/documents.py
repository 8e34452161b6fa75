"""Documents that the tests start from."""

from collections.abc import Mapping

from jobs.jobspec.checks import parse
from jobs.jobspec.problem import Problem, SpecError

TRAINING: Mapping[str, object] = {"name": "train", "team": "vision", "image": "pytorch/pytorch:2.1"}
GANG: Mapping[str, object] = {**TRAINING, "workers": 4, "gpus_per_worker": 8}
SERVICE: Mapping[str, object] = {"name": "serve", "team": "vision", "image": "my-model:v1.0", "kind": "inference"}


def problems_of(document: object) -> list[Problem]:
    """What is wrong with the document; empty when it is taken."""
    try:
        parse(document)  # type: ignore[arg-type]
    except SpecError as error:
        return list(error.problems)
    return []


def faults_of(document: object) -> list[tuple[str, str]]:
    """Field and code of everything that is wrong with the document."""
    return [(problem.field, problem.code) for problem in problems_of(document)]
