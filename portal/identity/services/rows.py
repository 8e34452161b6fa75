"""From what the database refuses to what a person can mend."""

from django.core.exceptions import ValidationError
from django.db.models import Model

from portal.core.errors import InvalidInputError


def check(row: Model) -> None:
    """Check fields and uniqueness of a row before it is saved. Raise InvalidInputError with every problem."""
    # To a form an empty date would be a slip; to the database it says that the thing has not happened.
    unset = {field.name for field in row._meta.fields if field.null and getattr(row, field.attname) is None}  # noqa: SLF001
    try:
        row.full_clean(exclude=unset)
    except ValidationError as error:
        raise InvalidInputError({field: list(texts) for field, texts in error.message_dict.items()}) from error
