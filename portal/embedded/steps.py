"""What the person at the terminal sees: each step as it runs, with its seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

_WIDTH = 34


class Steps:
    """Writes one line for each step and whole lines between them."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._began = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show the title while the block runs, then its seconds or that it did not succeed."""
        began = time.monotonic()
        self._write(f"  {title} ".ljust(_WIDTH, "."))
        try:
            yield
        except BaseException:
            self._write(" not done\n")
            raise
        self._write(f" {time.monotonic() - began:.1f} s\n")

    def say(self, line: str) -> None:
        """Write a line."""
        self._write(line + "\n")

    def seconds(self) -> float:
        """Return the seconds since the first step could begin."""
        return time.monotonic() - self._began

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def tail(log: Path, lines: int = 15) -> str:
    """Return the end of a log, indented, or a word that there is none."""
    try:
        last = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        last = []
    return "\n".join(f"    {line}" for line in last) or "    (the log is empty)"
