"""Every problem has a sentence with its limit, in the reader's language."""

import re
from pathlib import Path

import pytest
from django.utils import translation

from jobs.explain import problems
from jobs.explain.problems import by_field, full_sentence, sentence
from jobs.jobspec.problem import Problem
from tests.jobspec.documents import TRAINING, problems_of
from tests.jobspec.test_checks import WRONG, WRONG_INSIDE

ROOM = Path(problems.__file__).parents[1] / "jobspec"
# The ways in which the room names a code: to refuse a field, in a problem, in a rule for texts, in a table.
CODES = (
    re.compile(r'refuse\([^\n]*?, "([a-z_]+)"'),
    re.compile(r'code="([a-z_]+)"'),
    re.compile(r'_refusal\("([a-z_]+)"'),
    re.compile(r'Text\([^"\n]+"([a-z_]+)"'),
    re.compile(r'\("(yaml_[a-z_]+)"'),
    re.compile(r'CronError\("([a-z_]+)"'),
    re.compile(r'"((?:only_for|unknown|cannot)_[a-z]+)"'),
)
REFUSED = [{case[0]: case[1]} for case in WRONG] + [dict(case[0]) for case in WRONG_INSIDE]


def codes() -> set[str]:
    """Every code that the room can give, read from its text."""
    texts = [path.read_text(encoding="utf-8") for path in ROOM.glob("*.py")]
    return {code for text in texts for pattern in CODES for code in pattern.findall(text)}


def test_there_is_one_sentence_for_each_code_and_none_for_another() -> None:
    assert codes() == problems._SENTENCES.keys()


@pytest.mark.parametrize("document", REFUSED, ids=range(len(REFUSED)))
def test_a_refused_document_is_explained_in_short_whole_sentences(document: dict[str, object]) -> None:
    for problem in problems_of({**TRAINING, **document}):
        text = sentence(problem)
        assert "%(" not in text
        assert text.endswith((".", "?"))
        assert len(text) < 400


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"gpus_per_worker": 99}, "gpus_per_worker: At most 16, not 99."),
        ({"workers": "2"}, "workers: This must be a whole number, not a text."),
        ({"wrokers": 2}, "wrokers: There is no such field. Did you mean “workers”?"),
        ({"volumes": [{"mount_path": "/d"}]}, "volumes[0].claim: This field is required."),
        ({"cpu": {"request": "2", "limit": "1"}}, "cpu.request: The request 2 is above the limit 1."),
    ],
)
def test_a_sentence_names_field_and_limit(document: dict[str, object], text: str) -> None:
    [problem] = problems_of({**TRAINING, **document})
    assert full_sentence(problem) == text


def test_a_problem_of_the_whole_document_needs_no_field() -> None:
    assert full_sentence(Problem(field="", code="yaml_empty")) == "The text is empty."


def test_sentences_are_gathered_by_field() -> None:
    found = by_field(problems_of({**TRAINING, "workers": 0, "volumes": [{}]}))
    assert {field: len(texts) for field, texts in found.items()} == {
        "workers": 1,
        "volumes[0].claim": 1,
        "volumes[0].mount_path": 1,
    }


def test_a_sentence_is_made_in_the_language_of_the_moment() -> None:
    problem = Problem(field="name", code="required")
    with translation.override("ar"):
        assert isinstance(sentence(problem), str)


def test_what_a_person_typed_stays_short_and_on_one_line() -> None:
    [problem] = problems_of({**TRAINING, "image": "a\nb" * 100})
    assert len(sentence(problem)) < 300
    assert "\n" not in sentence(problem)
