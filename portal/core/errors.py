"""Errors that a person can do something about."""

from collections.abc import Mapping

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


class InvalidInputError(DomainError):
    """The input breaks one or more rules; each problem names its field."""

    code = "invalid"
    status = 422
    default_message = _("Some fields need another value.")

    def __init__(self, problems: Mapping[str, list[str]], *, code: str | None = None) -> None:
        self.problems = {field: list(messages) for field, messages in problems.items()}
        field, messages = next(iter(self.problems.items()), ("", []))
        super().__init__("; ".join(messages) or None, code=code, field=field or None)


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
