"""What the Engine layer's tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asking import Connect
from local_engine import LocalEngine

from coda.program.engine import Engine, EngineConfig, remedies, server
from coda.program.engine.ledger import Ledger


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
