"""Any document is read or refused, and a spec survives every form it travels in byte by byte."""

import contextlib
from dataclasses import fields
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs.jobspec import yaml_text
from jobs.jobspec.checks import parse
from jobs.jobspec.fields import JobSpec
from jobs.jobspec.manifest_in import spec_from_yaml
from jobs.jobspec.problem import SpecError
from tests.jobspec.documents import GANG, SERVICE, TRAINING, problems_of
from tests.jobspec.rendered import container_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["rack", "require", "1Gi", "/data", "a", "\0", "\ud800", "Exists", "sha256:"])
    | st.integers(-1, 600)
)
KNOWN_KEYS = st.sampled_from(
    [item.name for item in fields(JobSpec)]
    + ["schedule", "pod_sets", "claim", "mount_path", "key", "mode", "level", "request", "limit", "path", "git_url"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KNOWN_KEYS | st.text(), inner, max_size=5)
        | st.dictionaries(st.integers() | st.text(), inner, max_size=2)
    ),
    max_leaves=12,
)
BASES = st.sampled_from([{}, TRAINING, GANG, SERVICE])
# What Unicode can hold but UTF-8 and Kubernetes cannot: half characters and the NUL.
BYTES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
AWKWARD = "\"'\\\t\n ${X} {{ x }} %s - $(Y) \r\x85\u2028 "


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_any_value_is_read_or_refused(value: object) -> None:
    for problem in problems_of(value):
        assert problem.code


@given(BASES, st.dictionaries(KNOWN_KEYS, VALUES, max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_value_in_any_field_is_read_or_refused(base: dict[str, object], values: dict[str, object]) -> None:
    document = {**base, **values}
    if not problems_of(document):
        spec = parse(document)
        assert parse(spec.as_document()) == spec


@given(st.text() | st.from_regex(r"(?:[a-z]{1,3}: [\[\]{}&*!|>'\"%@\-?,# a-z0-9]{0,20}\n){1,6}"))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_as_yaml_or_refused(text: str) -> None:
    with contextlib.suppress(SpecError):
        assert spec_from_yaml(text, defaults={}).name


AMOUNTS = st.fixed_dictionaries({"request": st.sampled_from(["1", "500m", 2]), "limit": st.sampled_from(["2", "8"])})
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "queue": st.none() | st.just("nightly"),
    "priority": st.none() | st.just("research"),
    "labels": st.dictionaries(st.sampled_from(["app", "x.example/y"]), st.sampled_from(["", "a", "B.c"])),
    "description": BYTES,
    "command": st.lists(BYTES, max_size=3),
    "args": st.lists(BYTES, max_size=3),
    "env": st.dictionaries(st.from_regex(r"[A-Z_]{1,9}X", fullmatch=True), BYTES, max_size=4),
    "cpu": st.none() | AMOUNTS,
    "memory": st.none() | AMOUNTS,
    "shared_memory": st.none() | st.just("1"),
    "accelerators": st.lists(st.sampled_from(["A100", "H100", "T4"]), unique=True),
    "spread_policy": st.sampled_from(["auto", "pack", "spread"]),
    "volumes": st.lists(st.just({"claim": "data", "mount_path": "/data"}), max_size=1),
    "secrets": st.lists(st.just({"name": "s", "key": "k", "mount_path": "/run/k"}), max_size=1),
    "tolerations": st.lists(st.just({"key": "a", "effect": "NoExecute", "seconds": 0}), max_size=1),
    "code": st.none() | st.just({"git_url": "https://git.example/team/app.git", "ref": "main", "path": "src"}),
    "parent": st.none() | st.just("7f3k2"),
}
TRAININGS = st.fixed_dictionaries(
    {},
    optional={
        **COMMON,
        "workers": st.integers(2, 512),
        "min_workers": st.integers(1, 2),
        "gpus_per_worker": st.integers(1, 16),
        "topology": st.sampled_from([{"mode": "none"}, {"mode": "prefer"}, {"mode": "require", "level": "zone"}]),
        "backoff_limit": st.integers(0, 100),
        "ttl_s": st.none() | st.integers(60, 1000),
        "max_runtime_s": st.integers(1, 1000),
        "checkpoint": st.just({"path": "/data", "interval_s": 60}),
    },
)
PROBES = st.fixed_dictionaries({"path": st.just("/health"), "delay_s": st.integers(0, 9), "port": st.just(1)})
SERVICES = st.fixed_dictionaries(
    {},
    optional={
        **COMMON,
        "replicas": st.integers(0, 100),
        "port": st.none() | st.integers(1, 65_535),
        "service_port": st.none() | st.integers(1, 65_535),
        "readiness": PROBES,
        "liveness": PROBES,
    },
)
SPECS = TRAININGS.filter(lambda given: "min_workers" not in given or "workers" in given).map(
    lambda given: parse({**TRAINING, **given})
) | SERVICES.map(lambda given: parse({**SERVICE, **given}))


@given(SPECS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_spec_survives_its_document_and_its_yaml(spec: JobSpec) -> None:
    assert parse(spec.as_document()) == spec
    assert list(parse(spec.as_document()).as_document()) == list(spec.as_document())
    assert spec_from_yaml(yaml_text.write(spec.as_document()), defaults={}) == spec


@given(st.lists(BYTES, max_size=4), BYTES)
@example(args=[AWKWARD, ""], value=AWKWARD)
@settings(deadline=None)
def test_variables_and_arguments_arrive_byte_by_byte(args: list[str], value: str) -> None:
    given_spec = parse({**TRAINING, "env": {"A": value}, "args": args})
    by_yaml = spec_from_yaml(yaml_text.write(given_spec.as_document()), defaults={})
    container = container_of(by_yaml)
    assert container["env"] == [{"name": "A", "value": value}]
    assert container.get("args", []) == args
    [shown] = yaml_text.read(yaml_text.write(container))
    assert shown == container
