"""Reading JSON bodies: what the database could not store, or the parser could not hold, is a 400."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

# What is nested deeper than this holds nothing that we know, and costs a stack to read, compare and write again.
DEEPEST = 64


class BodyTooLargeError(APIException):
    """The body has more bytes than the portal reads."""

    status_code = 413
    default_code = "body_too_large"
    default_detail = gettext_lazy("The body is too large.")


class StrictJSONParser(BaseParser):
    """JSON as the standard has it: no NaN, no half surrogates, no NUL, no key twice, no bottomless nesting."""

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
            document = _read(read_body(stream).decode(encoding))
            check_text(document)
        except (ValueError, LookupError, RecursionError) as error:
            raise ParseError(_("The body is not valid JSON: {error}").format(error=error)) from error
        return document


def read_body(stream: IO[bytes]) -> bytes:
    """Return the whole body. Raise BodyTooLargeError for more than a form may have: Django limits forms alone."""
    most: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    body = stream.read(most + 1)
    if len(body) > most:
        raise BodyTooLargeError
    return body


def check_text(document: object) -> None:
    """Raise ValueError if a string of the document holds a NUL or half of a surrogate pair, or one nests too deep."""
    waiting = [(document, 0)]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, str):
            if "\x00" in part:
                raise ValueError("a string holds the character NUL")
            part.encode()  # a UnicodeEncodeError is a ValueError
        elif isinstance(part, dict | list):
            if depth == DEEPEST:
                raise ValueError(f"it is nested more than {DEEPEST} deep")
            inside = [*part, *part.values()] if isinstance(part, dict) else part
            waiting += [(item, depth + 1) for item in inside]


def _read(text: str) -> object:
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_each_key_once)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Which of two equal keys counts is up to each reader: what was checked might not be what is meant.
    whole = dict(pairs)
    if len(whole) < len(pairs):
        raise ValueError("an object has the same key twice")
    return whole
