"""Alice owns a team, Bob is its member, Victor may only look, Charlie is a stranger with a team of his own."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker, Settings
from rest_framework.test import APIClient

from portal.identity.models import ApiToken, Membership, Team, User
from tests.factories import make_membership, make_team, make_user
from tests.kube.build import VERSIONS
from tests.kube.fixtures import kube_plane as kube_plane


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch between the everyday suite and the one on a real control plane."""
    parser.addoption("--kube", action="store_true", help="run the tests on a real Kubernetes control plane, no others")
    parser.addoption("--kube-version", choices=sorted(VERSIONS), default="1.36", help="of that (default 1.36)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one of the two suites: a real control plane must be built first, which takes minutes."""
    version = str(config.getoption("--kube-version"))
    for item in items:
        needed = item.get_closest_marker("kubernetes")
        if needed and version not in needed.args:
            reason = f"needs Kubernetes {' or '.join(needed.args)}: ./run test --kube --kube-version {needed.args[0]}"
            item.add_marker(pytest.mark.skip(reason=reason))
    wanted: bool = config.getoption("--kube")
    others = [item for item in items if (item.get_closest_marker("kube") is not None) != wanted]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if (item.get_closest_marker("kube") is not None) == wanted]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    # The token package makes its own table although ours replaces it. Nothing uses it, and its foreign key to
    # users stops the TRUNCATE that ends a test with committed rows.
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS knox_authtoken")


@pytest.fixture(autouse=True)
def _settings_of_tests(settings: Settings) -> None:
    # A slow hash is right for people and wrong for a thousand tests.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Static files are found where they are written: no test collects them first.
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture
def team() -> Team:
    return make_team("vision")


@pytest.fixture
def other_team() -> Team:
    return make_team("speech")


@pytest.fixture
def alice(team: Team) -> User:
    return make_membership(make_user("alice"), team, Membership.Role.OWNER).user


@pytest.fixture
def bob(team: Team) -> User:
    return make_membership(make_user("bob"), team, Membership.Role.MEMBER).user


@pytest.fixture
def victor(team: Team) -> User:
    return make_membership(make_user("victor"), team, Membership.Role.VIEWER).user


@pytest.fixture
def charlie(other_team: Team) -> User:
    return make_membership(make_user("charlie"), other_team, Membership.Role.OWNER).user


@pytest.fixture
def admin() -> User:
    return make_user("admin", is_superuser=True)


@pytest.fixture
def browser_of() -> Callable[[User], Client]:
    """A browser in which the person has signed in."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture
def api_of() -> Callable[[User], APIClient]:
    """A REST client that carries a real token of the person."""

    def with_token(user: User) -> APIClient:
        _token, secret = ApiToken.objects.create(user, name="test")
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        return client

    return with_token
