"""From what the database refuses to what a person can mend."""

from django.core.exceptions import ValidationError
from django.db.models import Model

from portal.core.errors import InvalidInputError


def check(row: Model) -> None:
    """Check fields and uniqueness of a row before it is saved. Raise InvalidInputError with every problem."""
    try:
        row.full_clean()
    except ValidationError as error:
        raise InvalidInputError({field: list(texts) for field, texts in error.message_dict.items()}) from error
