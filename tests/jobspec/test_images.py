"""Image references are split at the right places, and nothing else passes for one."""

import pytest

from jobs.jobspec.syntax import ImageRef, parse_image
from tests.jobspec.documents import TRAINING, faults_of

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("images.example.invalid:5000/team/app", ImageRef("images.example.invalid:5000", "team/app", None, None)),
        ("localhost:5000/app:1.0", ImageRef("localhost:5000", "app", "1.0", None)),
        (f"app@{DIGEST}", ImageRef("", "app", None, DIGEST)),
        (f"app:1.0@{DIGEST}", ImageRef("", "app", "1.0", DIGEST)),
        ("team/app:buster", ImageRef("", "team/app", "buster", None)),
    ],
)
def test_an_image_is_split_at_the_right_colon(text: str, image: ImageRef) -> None:
    assert parse_image(text) == image


@pytest.mark.parametrize(
    "text",
    ["App:1", "app:", "app: 1", "app;rm", "app@sha256:abc", "good.invalid@evil.invalid/app", "a//b", "/a", "a" * 513],
)
def test_what_is_no_image_is_refused(text: str) -> None:
    assert parse_image(text) is None
    assert faults_of({**TRAINING, "image": text})[0][0] == "image"
