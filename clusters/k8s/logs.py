"""Logs of containers: what to ask for, and text out of bytes that may be anything."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import TypedDict

READ_TIMEOUT_S = 5.0
# A program may print nothing for a long while; a stream that is followed waits for it.
FOLLOW_TIMEOUT_S = 600.0
# Longer lines are cut into pieces, so that a progress bar without an end does not fill the memory.
MAX_LINE = 16_384
# A carriage return at the very end waits: the next chunk may start with its line feed.
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class LogOptions(TypedDict, total=False):
    """Which part of a log: `tail` in lines, `limit_bytes` from its start; None stands for all of it."""

    container: str
    tail: int | None
    follow: bool
    timestamps: bool
    limit_bytes: int | None


def query(options: LogOptions) -> dict[str, str | int | bool]:
    """Return the parameters of a request for a pod's log."""
    wanted = {
        "container": options.get("container"),
        "follow": options.get("follow"),
        "timestamps": options.get("timestamps"),
        "tailLines": options.get("tail"),
        "limitBytes": options.get("limit_bytes"),
    }
    return {key: value for key, value in wanted.items() if value is not None and value is not False}


def read_timeout_s(options: LogOptions) -> float:
    """Return how long a silent log is waited for."""
    return FOLLOW_TIMEOUT_S if options.get("follow") else READ_TIMEOUT_S


def lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Turn chunks into lines without their ends; bytes that are no UTF-8 become U+FFFD, NUL disappears.

    A character that is cut by the edge of a chunk stays whole. A carriage return ends a line too.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for chunk in chunks:
        text = rest + decoder.decode(chunk).replace("\x00", "")
        *complete, rest = _LINE_END.split(text)
        for line in complete:
            yield from _pieces(line)
        while len(rest) > MAX_LINE:
            yield rest[:MAX_LINE]
            rest = rest[MAX_LINE:]
    rest = (rest + decoder.decode(b"", final=True)).removesuffix("\r")
    if rest:
        yield rest


def _pieces(line: str) -> Iterator[str]:
    yield line[:MAX_LINE]
    for start in range(MAX_LINE, len(line), MAX_LINE):
        yield line[start : start + MAX_LINE]
