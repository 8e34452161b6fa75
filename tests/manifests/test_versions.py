"""Which versions are too old: the same by our own reading and by the database's."""

import re

import pytest

from clusters.manifests.versions import TOO_OLD, is_too_old

CASES = {
    "v1.29.14": True,
    "1.29": True,
    "v1.9.0-eks-1": True,
    "v1.2": True,
    "v0.99.0": True,
    "v1.19+": True,
    "v1.30.0": False,
    "v1.30.0-rc.1": False,
    "1.30": False,
    "v1.100.0": False,
    "v1.290.0": False,
    "v2.1.0": False,
    "v10.1.0": False,
    "": False,
    "unknown": False,
}


@pytest.mark.parametrize(("text", "is_old"), CASES.items())
def test_both_readings_agree(text: str, is_old: bool) -> None:
    assert is_too_old(text) is is_old
    assert bool(re.search(TOO_OLD, text)) is is_old


@pytest.mark.parametrize("minor", range(120))
def test_every_minor_version_is_read_alike(minor: int) -> None:
    for text in (f"v1.{minor}", f"v1.{minor}.7", f"1.{minor}.0-gke.1"):
        assert is_too_old(text) is (minor < 30)
        assert bool(re.search(TOO_OLD, text)) is (minor < 30)
