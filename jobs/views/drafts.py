"""A run that is still being written: one document, shown as a form or as YAML."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404

from jobs.forms.layout import Document
from jobs.forms.refusals import add_problems, problems_of
from jobs.forms.spec import SpecForm
from jobs.jobspec import yaml_text
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.lesson import TEMPLATES, Template, by_name
from jobs.jobspec.yaml_lines import line_of
from jobs.selectors.choices import choices_for
from jobs.selectors.jobs import jobs_visible_to
from jobs.services import intake, submit
from portal.core.errors import DomainError
from portal.core.http import Request
from portal.identity.models import Membership, Team, User

FORM, YAML = "form", "yaml"
_SUBMITS = (Membership.Role.OWNER, Membership.Role.MEMBER)


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """One sentence about the YAML, with its line where it has one."""

    line: int | None
    text: str


@dataclass
class Draft:
    """What stands in the page, for one team. `source` names the tab that counts."""

    team: Team
    source: str
    form: SpecForm
    yaml: str = ""
    problems: list[YamlProblem] = field(default_factory=list)

    def spec(self) -> JobSpec:
        """Check the document. Raise InvalidInputError."""
        if self.source == FORM:
            return intake.read_document(self.form.document, team=self.team)
        return intake.read_document(intake.document_for(self.team, self.yaml), team=self.team)

    def request(self, reader: User) -> submit.Request:
        """Check the document and find the rows behind its names, as far as the reader sees. Raise DomainError."""
        return submit.resolve(self.spec(), team=self.team, reader=reader)

    def refuse(self, refusal: DomainError) -> None:
        """Show what is wrong, beside the fields or with the lines of the YAML."""
        problems = problems_of(refusal)
        if self.source == FORM:
            self.form.is_valid()
            add_problems(self.form, problems)
        self.problems = [
            YamlProblem(line_of(self.yaml, path) if path else None, f"{path}: {sentence}" if path else sentence)
            for path, sentences in problems.items()
            for sentence in sentences
        ]


def teams_of(request: Request) -> list[Team]:
    """Return the teams for which the person may submit."""
    return [team for team in request.teams if request.roles[team.pk] in _SUBMITS]


def first_draft(request: Request, team: Team, kind: str) -> Draft:
    """Begin with `?from=<run>`, else with `?template=<name>`, else with the first template of the kind."""
    document = _start_document(request, kind)
    return Draft(team, FORM, SpecForm(choices=choices_for(team), document=document))


def posted_draft(request: Request) -> Draft:
    """Return what the page holds. Raise 404 for a foreign team, PermissionDenied for one that is only seen."""
    team = _posted_team(request)
    source = YAML if request.POST.get("source") == YAML else FORM
    form = SpecForm(request.POST, choices=choices_for(team))
    return Draft(team, source, form, yaml=request.POST.get("yaml", "").replace("\r\n", "\n"))


def as_yaml(draft: Draft) -> str:
    """Write the document of the form."""
    document = {name: value for name, value in draft.form.document.items() if name != "team"}
    return yaml_text.write(document)


def as_form(draft: Draft) -> SpecForm:
    """Return a form of the YAML. Raise InvalidInputError for a text that no form can show whole."""
    document = intake.document_for(draft.team, draft.yaml)
    intake.read_document(document, team=draft.team, partial=True)
    return SpecForm(choices=choices_for(draft.team), document=document)


def templates_of(kind: str) -> list[Template]:
    """Return the templates to start from."""
    return [template for template in TEMPLATES if template.kind == kind]


def _start_document(request: Request, kind: str) -> Document:
    if uid := request.GET.get("from"):
        job = jobs_visible_to(request.user).filter(uid=uid).first() if uid.isalnum() else None
        if job is None:
            raise Http404
        return {name: value for name, value in intake.document_again(job).items() if name != "team"}
    name = request.GET.get("template")
    template = by_name(name) if name else templates_of(kind)[0]
    if template is None or template.kind != kind:
        raise Http404
    return _copy(template.document)


def _posted_team(request: Request) -> Team:
    wanted = request.POST.get("team")
    if wanted and wanted not in {team.slug for team in request.teams}:
        raise Http404
    teams = teams_of(request)
    chosen = next((team for team in teams if team.slug == wanted or (not wanted and team == request.team)), None)
    if chosen is None:
        raise PermissionDenied
    return chosen


def _copy(document: Mapping[str, Any]) -> Document:
    return deepcopy(dict(document))
