"""The portal's clock, turned by a test."""

from datetime import datetime, timedelta

import pytest

from portal.core import clock


class Watch:
    """The portal's clock, which a test may turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real, self.offset = clock.now, timedelta()
        monkeypatch.setattr(clock, "now", lambda: self._real() + self.offset)

    def now(self) -> datetime:
        return self._real() + self.offset
