"""Documents from outside -> a checked JobSpec; what is wrong comes back in words, by field."""

from collections.abc import Mapping
from dataclasses import replace

from jobs.explain import problems as explain
from jobs.jobspec import checks, manifest_in, rules
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.problem import SpecError
from jobs.models import Job
from portal.core.errors import InvalidInputError
from portal.identity.models import Team


def read_document(document: Mapping[str, object], *, team: Team) -> JobSpec:
    """Check a JobSpec document. Raise InvalidInputError with a sentence for each wrong field."""
    try:
        return checks.parse({**document, "team": team.slug})
    except SpecError as error:
        raise _in_words(error) from error


def read_yaml(text: str, *, team: Team, defaults: Mapping[str, object]) -> JobSpec:
    """Check a JobSpec in YAML or a Kubernetes document. `defaults` fill what the document does not say."""
    try:
        spec = manifest_in.spec_from_yaml(text, defaults={**defaults, "team": team.slug})
    except SpecError as error:
        raise _in_words(error) from error
    # The team was decided, with its permission, before the text was read.
    return replace(spec, team=team.slug)


def warnings_of(spec: JobSpec) -> list[dict[str, str]]:
    """What looks like a mistake and is allowed."""
    return [
        {"field": problem.field, "code": problem.code, "message": explain.full_sentence(problem)}
        for problem in rules.warnings(spec)
    ]


def document_again(job: Job) -> dict[str, object]:
    """The document of a run, to be edited and submitted again."""
    return {**job.spec, "parent": job.uid}


def _in_words(error: SpecError) -> InvalidInputError:
    code = error.problems[0].code if len({problem.code for problem in error.problems}) == 1 else "invalid"
    return InvalidInputError(explain.by_field(error.problems), code=code)
