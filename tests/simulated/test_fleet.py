"""The demonstration's fleet holds what a person of the demonstration needs."""

from clusters.simulated.fleet import mixed
from jobs.jobspec.checks import parse
from jobs.jobspec.lesson import TEMPLATES
from portal.seed.organisation import TEAMS


def test_every_team_of_the_demo_finds_the_claims_of_every_template_for_many_nodes() -> None:
    fleet = mixed("sim-east", 32)
    shared = {
        (claim["namespace"], claim["name"]) for claim in fleet["claims"] if "ReadWriteMany" in claim["access_modes"]
    }
    specs = [parse({"team": "vision", **template.document}) for template in TEMPLATES]
    mounted = {volume.claim for spec in specs for volume in spec.volumes}

    assert "shared-checkpoints" in mounted
    assert {(f"team-{team}", claim) for team in TEAMS for claim in mounted} <= shared
    assert set(fleet["namespaces"]) == {f"team-{team}" for team in TEAMS}
