"""Chromium, a server on the test's own database, and how a person signs in."""

import mimetypes
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import uvicorn
from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.staticfiles import finders
from django.core.asgi import get_asgi_application
from django.db import connection
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django import Settings

from portal.identity.models import Membership, Team, User
from tests.factories import make_membership
from tests.portal.gallery import Board, reset

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_S = 10.0
# Build machines are slow now and then; a wait that succeeds costs nothing.
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)
TEMPLATES = Path(__file__).parents[1] / "portal/templates"


@dataclass(frozen=True)
class Live:
    """A server that answers from the test's database."""

    url: str


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium once for all browser tests."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def errors() -> list[str]:
    """What the page complained about: exceptions and console errors, breaches of the content policy among them."""
    return []


@pytest.fixture
def page(browser: Browser, live: Live, errors: list[str]) -> Iterator[Page]:
    """Open a page of 1440 by 900; addresses are relative to the server."""
    context = browser.new_context(base_url=live.url, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()


@pytest.fixture
def live(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """Serve the portal by ASGI in a thread. Django's own live server would read an endless stream to its end."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright runs an event loop in this thread
    # A connection kept by a request's thread would outlive the test and block the next flush.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    monkeypatch.setattr(django_settings, "ALLOWED_HOSTS", ["127.0.0.1"])
    listener = socket.create_server(("127.0.0.1", 0))
    application = with_static_files(cast("ASGI3Application", get_asgi_application()))
    config = uvicorn.Config(application, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    _wait_until(lambda: server.started, START_S)
    yield Live(f"http://127.0.0.1:{listener.getsockname()[1]}")
    server.should_exit = True
    thread.join(START_S)
    listener.close()
    end_other_sessions()


@pytest.fixture
def sign_in(live: Live) -> Callable[[Page, User], None]:
    """Give a page the session of a person without the form; the form has a test of its own."""

    def put_cookie(page: Page, user: User) -> None:
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        page.context.add_cookies(
            [{"name": django_settings.SESSION_COOKIE_NAME, "value": str(session.session_key), "url": live.url}]
        )

    return put_cookie


def end_other_sessions() -> None:
    """End what requests left open: a page that was closed in the middle of an answer would block the next flush."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def board() -> Board:
    """What the gallery shows, as new."""
    return reset()


@pytest.fixture
def gallery(
    page: Page, settings: Settings, board: Board, admin: User, team: Team, sign_in: Callable[[Page, User], None]
) -> Page:
    """The page with every component, seen by a platform administrator."""
    templates = deepcopy(settings.TEMPLATES)
    templates[0]["DIRS"] = [*templates[0]["DIRS"], TEMPLATES]
    settings.TEMPLATES = templates
    settings.ROOT_URLCONF = "tests.portal.gallery"
    make_membership(admin, team, Membership.Role.OWNER)
    sign_in(page, admin)
    return page


def with_static_files(application: ASGI3Application) -> ASGI3Application:
    """Answer for static files before the portal does: those that it streams bring a warning each under ASGI."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        found = finders.find(path.removeprefix(django_settings.STATIC_URL)) if path.startswith("/static/") else None
        if not isinstance(found, str):
            await application(scope, receive, send)
            return
        kind = (mimetypes.guess_type(found)[0] or "application/octet-stream").encode()
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": Path(found).read_bytes(), "more_body": False})

    return answer


def _wait_until(is_done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > end:
            raise TimeoutError("the server did not start")
        time.sleep(0.01)
