"""What the Engine layer's tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from local_engine import LocalEngine

from coda.program.engine import Engine, EngineConfig, remedies, server
from coda.program.engine.ask import Ask
from coda.program.engine.ledger import Ledger
from coda.program.engine.replies import Reply

Connect = Callable[..., Engine]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back off for milliseconds: the tests are about what is sent, not about when."""
    monkeypatch.setattr(remedies, "BACKOFF", 0.002)
    monkeypatch.setattr(server, "FIRST_PAUSE", 0.01)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make Engines for a local engine; all of them are closed in the end."""
    engines: list[Engine] = []

    def make(local: LocalEngine, *, ledger: Ledger | None = None, **config: Any) -> Engine:
        settings = EngineConfig(**{"model": "openai/test-model", "api_base": local.api_base, **config})
        engines.append(Engine(settings, ledger=ledger))
        return engines[-1]

    yield make
    for engine in engines:
        await engine.aclose()


async def ask(engine: Engine, prompt: str = "6 × 7?", **options: Any) -> Reply:
    """Ask once."""
    return await engine.ask(Ask.of(prompt, None, options))


async def arrived(local: LocalEngine, requests: int) -> None:
    """Wait until the server has so many requests."""
    while local.requests < requests:  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.005)
