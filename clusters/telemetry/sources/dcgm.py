"""Fetch the exporters' text, many at once."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx

TIMEOUT_S = 3.0
MOST_AT_ONCE = 32
# A node with 16 GPUs writes about 60 kB.
MAX_BYTES = 2_000_000


class Exporters:
    """Keeps connections between scrapes; used within one event loop."""

    def __init__(self) -> None:
        limits = httpx.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=MOST_AT_ONCE)
        # trust_env off: a proxy of the environment is not meant for exporters, and looking it up costs time.
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, limits=limits, trust_env=False)
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def fetch(self, urls: Mapping[int, str]) -> dict[int, str]:
        """Return the texts of those that answered in time, by the caller's keys."""
        texts = await asyncio.gather(*(self._one(url) for url in urls.values()))
        return {key: text for key, text in zip(urls, texts, strict=True) if text is not None}

    async def _one(self, url: str) -> str | None:
        async with self._slots:
            try:
                answer = await self._client.get(url)
            except httpx.HTTPError:
                return None
        if answer.status_code != httpx.codes.OK or len(answer.content) > MAX_BYTES:
            return None
        return answer.text
