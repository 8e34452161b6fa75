"""Changing the password and getting a new one by mail."""

import logging
import re
from collections.abc import Callable

import pytest
from django.core import mail
from django.test import Client

from portal.core.models import AuditEvent
from portal.identity import forms
from portal.identity.models import User
from tests.factories import PASSWORD

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.portal.urls")]
CHANGE, RESET = "/people/password/", "/people/password/reset/"
NEW = "seventeen grey herons"


def link_in_mail() -> str:
    found = re.search(r"http://testserver(\S+)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def test_a_change_keeps_this_session_and_ends_the_others(browser_of: Callable[[User], Client], alice: User) -> None:
    here, there = browser_of(alice), browser_of(alice)
    here.post(CHANGE, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})

    alice.refresh_from_db()
    assert alice.check_password(NEW)
    assert here.get(CHANGE).status_code == 200
    assert there.get(CHANGE).status_code == 302
    assert AuditEvent.objects.get().action == "person.password_changed"
    assert NEW not in str(AuditEvent.objects.values())


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("wrong", NEW, NEW),
        (PASSWORD, NEW, "other"),
        (PASSWORD, "short", "short"),
        (PASSWORD, "alice@example.com", "alice@example.com"),
    ],
)
def test_a_wrong_change_changes_nothing(
    browser_of: Callable[[User], Client], alice: User, old: str, new: str, again: str
) -> None:
    form = {"old_password": old, "new_password1": new, "new_password2": again}
    assert browser_of(alice).post(CHANGE, form).status_code == 422
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_a_reset_does_not_tell_whether_an_account_exists(client: Client, alice: User) -> None:
    known = client.post(RESET, {"email": alice.email}, follow=True)
    unknown = client.post(RESET, {"email": "nobody@example.com"}, follow=True)
    assert known.redirect_chain == unknown.redirect_chain
    assert [message.to for message in mail.outbox] == [[alice.email]]


def test_a_mailed_link_sets_a_password_once(client: Client, alice: User, caplog: pytest.LogCaptureFixture) -> None:
    client.post(RESET, {"email": alice.email})
    link = link_in_mail()
    with caplog.at_level(logging.DEBUG):
        form_page = client.get(link, follow=True)
        address = form_page.redirect_chain[0][0]
        done = client.post(address, {"new_password1": NEW, "new_password2": NEW})

    alice.refresh_from_db()
    assert done.headers["Location"] == "/sign-in/"
    assert alice.check_password(NEW)
    assert AuditEvent.objects.get().actor == "alice"
    assert link.rstrip("/").rpartition("/")[2] not in caplog.text
    assert "expired" in Client().get(link, follow=True).content.decode()


def test_a_mailbox_cannot_be_filled(client: Client, alice: User) -> None:
    for _ in range(forms.MAILS_PER_ADDRESS + 3):
        assert client.post(RESET, {"email": alice.email}).status_code == 302
    assert len(mail.outbox) == forms.MAILS_PER_ADDRESS


@pytest.mark.parametrize("link", ["MQ/x-y", "!!!/x", "MQ/set-password", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5/x"])
def test_a_made_up_link_is_refused(client: Client, link: str) -> None:
    assert "expired" in client.get(f"{RESET}{link}/").content.decode()
