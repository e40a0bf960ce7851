"""What tests of the Engine layer do over and over: ask, wait for the server, read the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_engine import LocalEngine

from coda.program.engine import Engine
from coda.program.engine.ask import Ask
from coda.program.engine.replies import Reply

Connect = Callable[..., Engine]
"""Makes an Engine for a local engine; see the fixture ``connect``."""


async def ask(engine: Engine, prompt: str = "6 × 7?", **options: Any) -> Reply:
    """Ask once."""
    return await engine.ask(Ask.of(prompt, None, options))


async def arrived(local: LocalEngine, requests: int) -> None:
    """Wait until the server has so many requests."""
    while local.requests < requests:  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.005)


def lines(ledger: Path) -> list[dict[str, Any]]:
    """The lines of a ledger."""
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
