"""Every name that is built from ours is a legal name."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.manifests import names
from tests.jobspec.rendered import IDENTITY

# DNS-1035, because a Service carries the name too.
SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
PREFIXES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?", fullmatch=True)
RUNS = st.from_regex(r"[a-z0-9]{1,26}", fullmatch=True)


@given(prefix=PREFIXES, run=RUNS, attempt=st.integers(1, 9999))
@settings(deadline=None)
def test_an_object_name_leaves_room_for_rank_and_random_part(prefix: str, run: str, attempt: int) -> None:
    name = names.object_name(prefix, run, attempt)
    assert SERVICE_NAME.fullmatch(name)
    assert len(f"{name}-511-abcde") <= 63
    assert name.endswith(f"-{run}-a{attempt}")


def test_names_that_begin_alike_stay_apart() -> None:
    assert names.object_name("x" * 60 + "1", "run1", 1) != names.object_name("x" * 60 + "2", "run2", 1)


def test_a_run_id_without_room_for_a_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        names.object_name("m", "x" * 50, 1)


def test_our_labels_win_over_given_ones() -> None:
    labels = names.labels(IDENTITY, {"app": "x", "muster.internal/run": "forged"})
    assert labels["muster.internal/run"] == IDENTITY.run
    assert labels["app"] == "x"


def test_another_domain_prefixes_everything() -> None:
    identity = replace(IDENTITY, domain="gpu.example.com")
    ours = set(names.labels(identity, {})) - {names.MANAGED_BY_LABEL}
    assert {key.split("/")[0] for key in ours} == {"gpu.example.com"}
    assert names.gate("gpu.example.com") == "gpu.example.com/placement"


def test_an_attempt_is_found_by_installation_run_and_number() -> None:
    assert names.attempt_selector(IDENTITY) == (
        "muster.internal/installation=i1,muster.internal/run=7f3k2,muster.internal/attempt=1"
    )
