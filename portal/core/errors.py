"""Errors that a person can do something about."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Self

from django.utils.translation import gettext_lazy as _


class DomainError(Exception):
    """A rule of the product said no. `code` is stable, the message is for people, `field` names the input."""

    code = "refused"
    status = 409
    default_message = _("This is not possible now.")

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        field: str | None = None,
        numbers: Mapping[str, int | str] | None = None,
    ) -> None:
        self.message = str(message if message is not None else self.default_message)
        self.code = code or self.code
        self.field = field
        self.numbers = dict(numbers or {})
        super().__init__(self.message)

    def move_below(self, place: str) -> None:
        """Say that the input was the part of a larger one that stands at `place`."""
        self.field = _below(place, self.field)


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the input: where, a stable code, and a sentence for people with its numbers."""

    field: str
    code: str
    message: str
    numbers: Mapping[str, int | str] = dataclasses.field(default_factory=dict)


class InvalidInputError(DomainError):
    """The input breaks one or more rules; each fault names its field and has a code of its own."""

    code = "invalid"
    status = 422
    default_message = _("Some fields need another value.")

    def __init__(self, problems: Mapping[str, list[str]], *, code: str | None = None) -> None:
        self.problems = {field: list(messages) for field, messages in problems.items()}
        field, messages = next(iter(self.problems.items()), ("", []))
        super().__init__("; ".join(messages) or None, code=code, field=field or None)
        self.faults = [Fault(at, self.code, text) for at, texts in self.problems.items() for text in texts]

    @classmethod
    def of(cls, faults: Sequence[Fault]) -> Self:
        """Return the refusal for these faults: it has their code, and the numbers, where they are one."""
        problems: dict[str, list[str]] = {}
        for fault in faults:
            problems.setdefault(fault.field, []).append(fault.message)
        codes = {fault.code for fault in faults}
        refusal = cls(problems, code=codes.pop() if len(codes) == 1 else None)
        refusal.faults = list(faults)
        refusal.numbers = dict(faults[0].numbers) if len(faults) == 1 else {}
        return refusal

    def move_below(self, place: str) -> None:
        """Say that the input was the part of a larger one that stands at `place`."""
        super().move_below(place)
        self.problems = {_below(place, at): texts for at, texts in self.problems.items()}
        self.faults = [dataclasses.replace(fault, field=_below(place, fault.field)) for fault in self.faults]


class BadQueryError(DomainError):
    """A parameter of the address has a value that it cannot have."""

    code = "invalid_query"
    status = 400
    default_message = _("The address asks for something that there is not.")


class StaleEditError(DomainError):
    """Somebody else changed the row since it was read."""

    code = "stale"
    default_message = _("Somebody else changed this meanwhile.")


class NotAllowedError(DomainError):
    """The person may see the object but may not do this to it."""

    code = "not_allowed"
    status = 403
    default_message = _("Your role does not allow this.")


def _below(place: str, field: str | None) -> str:
    return f"{place}.{field}" if field else place
