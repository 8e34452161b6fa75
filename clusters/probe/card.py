"""The checks of a cluster in words, as far as a person may read them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from clusters.models import ClusterFinding
from clusters.permissions import can_administer_supply
from clusters.probe import paste, sentences
from clusters.selectors.findings import readable
from portal.identity.models import User


@dataclass(frozen=True, slots=True)
class Line:
    """One check in words; details, advice and YAML are for administrators alone, and empty for others."""

    code: str
    severity: str
    title: str
    sentence: str
    since: datetime
    details: tuple[str, ...] = ()
    advice: str = ""
    yaml: str = ""


def card_of(findings: Iterable[ClusterFinding], user: User) -> list[Line]:
    """Return what the person may read of the checks, the worst first."""
    may_administer = can_administer_supply(user)
    lines = []
    for finding in readable(findings, is_administrator=may_administer):
        told = sentences.tell(finding)
        line = Line(
            code=finding.code,
            severity=finding.severity,
            title=sentences.title(finding.code),
            sentence=told.sentence,
            since=finding.checked_at,
            details=told.details if may_administer else (),
            advice=told.advice if may_administer else "",
            yaml=paste.yaml_for(finding) if may_administer else "",
        )
        lines.append(line)
    return lines
