"""The log: who may read what, filters, paging; and that no act is left out of it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from portal.core import audit
from portal.core.audit import Target
from portal.core.models import AuditEvent
from portal.identity.actors import as_actor
from portal.identity.models import Membership, Team, User
from portal.identity.services import accounts, invitations, members, people, teams, tokens
from tests.factories import make_organization

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.portal.urls")]


def write(team: Team | None, *, action: str = "job.submitted", actor: User) -> AuditEvent:
    target = Target(type="job", id="x", label="train-1", team_id=team.pk if team else None)
    return audit.record(as_actor(actor), action, target, after={"gpus": 8})


def shown(browser: Client, query: str = "") -> list[int]:
    return [event.pk for event in browser.get(f"/audit/{query}").context["page"].rows]


def test_an_owner_reads_the_own_team_and_an_administrator_everything(
    browser_of: Callable[[User], Client], alice: User, charlie: User, admin: User, team: Team, other_team: Team
) -> None:
    own, foreign, nobodys = (write(one, actor=admin).pk for one in (team, other_team, None))
    assert shown(browser_of(alice)) == [own]
    assert shown(browser_of(charlie)) == [foreign]
    assert shown(browser_of(admin)) == [nobodys, foreign, own]
    assert shown(browser_of(alice), "?team=speech") == []
    assert shown(browser_of(admin), "?team=speech") == [foreign]


def test_who_owns_no_team_reads_no_log(browser_of: Callable[[User], Client], bob: User, victor: User) -> None:
    for person in (bob, victor):
        assert browser_of(person).get("/audit/").status_code == 403


def test_the_log_is_filtered_by_person_and_act(
    browser_of: Callable[[User], Client], alice: User, bob: User, team: Team
) -> None:
    by_alice = write(team, actor=alice)
    by_bob = write(team, actor=bob, action="quota.changed")
    browser = browser_of(alice)
    assert shown(browser, "?actor=bob") == [by_bob.pk]
    assert shown(browser, "?action=job.") == [by_alice.pk]
    assert shown(browser, "?action=%25") == []
    assert browser.get("/audit/?actor=%00").status_code == 422
    assert browser.get("/audit/?cursor=nonsense").status_code == 400


def test_the_log_is_walked_by_key_with_few_queries(
    browser_of: Callable[[User], Client], admin: User, team: Team, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    written = [write(team, actor=admin).pk for _ in range(60)]
    browser = browser_of(admin)
    with django_assert_max_num_queries(10):
        first = browser.get("/audit/?actor=admin")
    older = first.context["pager"]["older_url"]
    assert "actor=admin" in older
    assert [event.pk for event in first.context["page"].rows] + shown(browser, older) == written[::-1]


def test_a_whole_document_is_shown_as_json_and_folded_and_a_short_value_in_its_line(
    browser_of: Callable[[User], Client], alice: User, team: Team
) -> None:
    target = Target(type="job", id="x", label="train-1", team_id=team.pk)
    document = {"name": "train", "image": "team/torch:2.9", "args": [f"--option-{n}=1" for n in range(9)], "code": None}
    audit.record(as_actor(alice), "job.submitted", target, after={"gpus": 8, "open": True, "spec": document})
    html = " ".join(browser_of(alice).get("/audit/").content.decode().split())

    assert "<bdi>gpus: 8</bdi>" in html
    assert "<bdi>open: true</bdi>" in html
    assert "<details><summary><bdi>spec: {&quot;" in html
    assert (
        "&quot;code&quot;: null, &quot;name&quot;: &quot;train&quot;"
        in html.partition("<pre")[2].partition("</pre>")[0]
    )


def _acts(alice: User, bob: User, admin: User, team: Team) -> dict[str, Callable[[], Any]]:
    actor = as_actor(alice)
    membership = Membership.objects.get(user=bob)
    invited = invitations.invite(actor=actor, team=team, email="a@example.com", role="viewer", link_to=str)
    for_admin = invitations.invite(actor=actor, team=team, email=admin.email, role="viewer", link_to=str)
    for_nobody = invitations.invite(actor=actor, team=team, email="b@example.com", role="viewer", link_to=str)
    token, _secret = tokens.create_token(actor=actor, user=alice, name="old", days=1)
    digest = invitations.digest_of
    return {
        "person.signed_in": lambda: accounts.record_sign_in(user=alice),
        "person.signed_out": lambda: accounts.record_sign_out(user=alice),
        "person.password_changed": lambda: accounts.set_password(actor=actor, user=alice, password="x"),
        "person.changed": lambda: accounts.change_profile(actor=actor, user=alice, changes={"theme": "dark"}),
        "person.changed ": lambda: people.set_active(actor=as_actor(admin), person=bob, active=False),
        "person.changed  ": lambda: people.set_administrator(actor=as_actor(admin), person=alice, administrator=True),
        "member.role_changed": lambda: members.change_role(actor=actor, membership=membership, role="viewer"),
        "member.removed": lambda: members.remove_member(actor=actor, membership=membership),
        "invitation.created": lambda: invitations.invite(
            actor=actor, team=team, email="c@example.com", role="member", link_to=str
        ),
        "invitation.revoked": lambda: invitations.revoke_invitation(actor=actor, invitation=for_nobody.invitation),
        "person.registered": lambda: invitations.register(
            digest=digest(invited.link), username="anna", password="seventeen grey herons"
        ),
        "invitation.accepted": lambda: invitations.accept(user=admin, digest=digest(for_admin.link)),
        "organization.created": lambda: teams.create_organization(actor=actor, name="New", slug="new-one"),
        "team.created": lambda: teams.create_team(
            actor=actor, organization=make_organization(), name="Robots", slug="robots"
        ),
        "token.created": lambda: tokens.create_token(actor=actor, user=alice, name="ci", days=1),
        "token.revoked": lambda: tokens.revoke_token(actor=actor, token=token),
    }


def test_every_act_of_every_service_is_written_down(alice: User, bob: User, admin: User, team: Team) -> None:
    for action, act in _acts(alice, bob, admin, team).items():
        last = AuditEvent.objects.order_by("-id").values_list("pk", flat=True).first() or 0
        act()
        written = AuditEvent.objects.filter(pk__gt=last).values_list("action", flat=True)
        assert action.strip() in written, action


def test_no_public_service_is_missing_from_that_table(alice: User, bob: User, admin: User, team: Team) -> None:
    readers = {"check_password", "target_of", "member_target", "team_target", "open_invitations", "digest_of"}
    acts = {
        name
        for module in (accounts, invitations, members, people, teams, tokens)
        for name, value in vars(module).items()
        if callable(value)
        and not isinstance(value, type)
        and not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    }
    called = {name for act in _acts(alice, bob, admin, team).values() for name in act.__code__.co_names if name in acts}
    assert acts - readers == called
