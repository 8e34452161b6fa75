"""The control plane that all tests of `./run test --kube` share."""

from collections.abc import Iterator

import pytest

from tests.kube.plane import ControlPlane, running_plane


@pytest.fixture(scope="session")
def kube_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A real control plane with sixteen GPU nodes; pods that may end do so after twenty seconds."""
    with running_plane(version=str(request.config.getoption("--kube-version"))) as plane:
        yield plane
