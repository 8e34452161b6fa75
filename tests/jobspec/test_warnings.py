"""What is legal but hardly meant is told and taken all the same."""

import pytest

from jobs.jobspec.checks import parse
from jobs.jobspec.rules import warnings
from tests.jobspec.documents import TRAINING


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "db-password", "API_KEY", "token"])
def test_a_variable_that_looks_secret_gets_a_warning(name: str) -> None:
    [warning] = warnings(parse({**TRAINING, "env": {name: "x"}}))
    assert (warning.field, warning.code) == (f"env.{name}", "env_looks_secret")


@pytest.mark.parametrize("name", ["TOKENIZER", "MONKEY", "SECRETARY", "KEY_COUNT"])
def test_a_harmless_variable_gets_no_warning(name: str) -> None:
    assert warnings(parse({**TRAINING, "env": {name: "x"}})) == ()


def test_a_dollar_that_kubernetes_would_replace_gets_a_warning() -> None:
    spec = parse({**TRAINING, "env": {"A": "$(B)", "C": "${B}"}, "args": ["a$$b"]})
    assert [(item.field, item.code) for item in warnings(spec)] == [
        ("args[0]", "expanded_by_kubernetes"),
        ("env.A", "expanded_by_kubernetes"),
    ]


def test_checkpoints_that_would_be_lost_get_a_warning() -> None:
    document = {**TRAINING, "checkpoint": {"path": "/checkpoints/run"}}
    assert [item.code for item in warnings(parse(document))] == ["checkpoint_not_on_a_volume"]
    on_volume = {**document, "volumes": [{"claim": "c", "mount_path": "/checkpoints"}]}
    assert warnings(parse(on_volume)) == ()
