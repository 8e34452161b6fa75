"""Documents from outside -> a checked JobSpec; what is wrong comes back in words, by field."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from jobs.explain import problems as explain
from jobs.jobspec import checks, manifest_in, rules
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.problem import Problem, SpecError, shown
from jobs.jobspec.reader import type_name
from jobs.models import Job
from jobs.services.submit import Request
from portal.core.errors import Fault, InvalidInputError
from portal.identity.models import Team

Document = dict[str, object]


def read_document(document: Mapping[str, object], *, team: Team, partial: bool = False) -> JobSpec:
    """Check a JobSpec document. Raise InvalidInputError with a sentence for each wrong field.

    `partial` is for what is still being typed: what is missing is no fault.
    """
    try:
        return checks.parse({**document, "team": team.slug}, partial=partial)
    except SpecError as error:
        raise _in_words(error) from error


def document_of_yaml(text: str) -> Document:
    """Return the document of a text, ours or of Kubernetes, its values not checked. Raise InvalidInputError."""
    try:
        return manifest_in.document_from_yaml(text)
    except SpecError as error:
        raise _in_words(error) from error


def document_for(team: Team, text: str) -> Document:
    """Return the document of a text that is for this team. Raise InvalidInputError also if it names another one."""
    document = document_of_yaml(text)
    named = document.pop("team", None)
    if named not in (None, "", team.slug):
        words = _("The YAML names the team %(named)s, the page %(chosen)s.")
        raise InvalidInputError({"team": [words % {"named": shown(named), "chosen": team.slug}]}, code="unknown_team")
    return document


def team_named_in(document: Mapping[str, object]) -> str:
    """Return the team that a document names, "" for none. Raise InvalidInputError if it is no text."""
    named = document.get("team")
    if named is None or isinstance(named, str):
        return named or ""
    numbers = {"expected": "text", "given": type_name(named)}
    raise _in_words(SpecError((Problem(field="team", code="wrong_type", numbers=numbers),)))


def read_replicas(body: object) -> int:
    """Return how many replicas a body asks for. Raise InvalidInputError."""
    try:
        return checks.parse_scale(body)
    except SpecError as error:
        raise _in_words(error) from error


def read_pause(body: object) -> bool:
    """Return what a body says about pausing. Raise InvalidInputError."""
    try:
        return checks.parse_pause(body)
    except SpecError as error:
        raise _in_words(error) from error


def warnings_of(request: Request) -> list[dict[str, str]]:
    """What looks like a mistake and is allowed."""
    return [
        {"field": problem.field, "code": problem.code, "message": explain.full_sentence(problem)}
        for problem in (*rules.warnings(request.spec), *request.warnings)
    ]


def document_again(job: Job) -> dict[str, object]:
    """The document of a run, to be edited and submitted again."""
    return {**job.spec, "parent": job.uid}


def _in_words(error: SpecError) -> InvalidInputError:
    return InvalidInputError.of(
        [Fault(problem.field, problem.code, explain.sentence(problem)) for problem in error.problems]
    )
