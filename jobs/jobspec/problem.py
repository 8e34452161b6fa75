"""What is wrong with a document, one value per fault; `jobs.explain.problems` makes the sentence."""

import dataclasses
from collections.abc import Mapping

SHOWN_CHARS = 80


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault or warning.

    `field` is a dotted path ("volumes[0].claim", "" for the whole document), `code` is stable, `numbers` are
    the figures and short texts of its sentence.
    """

    field: str
    code: str
    numbers: Mapping[str, int | str] = dataclasses.field(default_factory=dict)


class SpecError(Exception):
    """The document was refused; `problems` says all that is wrong with it, in the order of the fields."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{problem.field}: {problem.code}" for problem in problems))
        self.problems = problems


def shown(value: object) -> str:
    """A value as it may stand in a sentence: short, printable, on one line."""
    text = value if isinstance(value, str) else repr(value)[: 2 * SHOWN_CHARS]
    line = "".join(char if char.isprintable() else "�" for char in text[: SHOWN_CHARS + 1])
    return line if len(line) <= SHOWN_CHARS else line[: SHOWN_CHARS - 1] + "…"
