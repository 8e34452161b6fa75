"""JSON of an API server, taken apart no further than it is read: most of an object is of no use to its reader."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from clusters.k8s.values import JsonObject

Item = TypeVar("Item")


class PageMetadata(Struct):
    """Of a page: the version of the whole list, and what leads to the next page."""

    version: str | None = field(default=None, name="resourceVersion")
    token: str | None = field(default=None, name="continue")


class Page(Struct, Generic[Item]):
    """One page of a list. An empty kind may be listed as null."""

    metadata: PageMetadata = field(default_factory=PageMetadata)
    items: list[Item] | None = None


class Line(Struct):
    """One line of a watch; `object` is a Status when the type is ERROR."""

    type: str
    object: Raw


@dataclass(frozen=True, slots=True)
class Event(Generic[Item]):
    """One change, or a bookmark."""

    type: str
    object: Item


class Form(Generic[Item]):
    """How documents of a kind are read: a Struct names the fields that are kept, all others are skipped.

    That takes a sixth of the time. `object` and `page` raise a ValueError for what has another shape.
    """

    def __init__(self, shape: type[Item]) -> None:
        self.object: Callable[[bytes | Raw], Item] = Decoder(shape).decode
        self.page: Callable[[bytes], Page[Item]] = Decoder(Page[shape]).decode  # type: ignore[valid-type]


WHOLE: Form[JsonObject] = Form(JsonObject)
line = Decoder(Line).decode


def unmanaged(body: JsonObject) -> JsonObject:
    """Drop the server's notes on who set which field: up to half of a whole object, and of no use here."""
    (body.get("metadata") or {}).pop("managedFields", None)
    return body
