"""What the suites of the crash matrix share; each makes its own `running` site."""

from collections.abc import Iterator

import pytest

from tests.crash.site import Site


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    """The site, of which nothing is left at work afterwards."""
    yield running
    running.clear()
