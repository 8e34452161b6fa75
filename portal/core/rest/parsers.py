"""Reading JSON bodies: what the database could not store, or the parser could not hold, is a 400."""

import json
from collections.abc import Mapping
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser


class StrictJSONParser(BaseParser):
    """JSON as the standard has it: no NaN, no half surrogates, no NUL, no bottomless nesting."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,  # noqa: ARG002 -- DRF's signature
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the document. Raise ParseError (400)."""
        encoding = (parser_context or {}).get("encoding") or "utf-8"
        try:
            document = json.loads(stream.read().decode(encoding), parse_constant=_refuse_constant)
            check_text(document)
        except (ValueError, LookupError, RecursionError) as error:
            raise ParseError(_("The body is not valid JSON: {error}").format(error=error)) from error
        return document


def check_text(document: object) -> None:
    """Raise ValueError if a string of the document holds a NUL or half of a surrogate pair."""
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            if "\x00" in part:
                raise ValueError("a string holds the character NUL")
            part.encode()  # a UnicodeEncodeError is a ValueError
        elif isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
