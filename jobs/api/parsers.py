"""Bodies in YAML."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from portal.core.rest.parsers import read_body


@dataclass(frozen=True, slots=True)
class YamlText:
    """A body that is YAML: read later, by the one reader that knows its limits."""

    text: str


class YamlParser(BaseParser):
    """Hands the text on; nothing of it is interpreted here."""

    media_type = "application/yaml"

    def parse(  # type: ignore[override]  # the text is interpreted later
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> YamlText:
        """Decode the body as UTF-8. Raise ParseError (400) when it is not."""
        try:
            return YamlText(read_body(stream).decode())
        except UnicodeDecodeError as error:
            raise ParseError(_("The body is not UTF-8.")) from error


class TextYamlParser(YamlParser):
    """The older media type."""

    media_type = "text/yaml"
