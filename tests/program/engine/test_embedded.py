"""The Engine on the embedded model: no key, no address, nothing to set up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import dspy
import pytest
from asking import ask

from coda.errors import EngineError
from coda.program.engine import Engine, EngineConfig, weights

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(not weights.installed(), reason="the weights are not here: run `coda engine pull`"),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(EngineConfig(seed=3)) as engine:
        yield engine


async def test_a_predictor_on_it(engine: Engine) -> None:
    await engine.acheck()
    with dspy.context(lm=engine.lm):
        reply = await engine.lm.acall("Say hello.", max_tokens=12)
    assert reply[0]
    assert engine.profile.name == "smollm2"


async def test_samples_at_once_differ(engine: Engine) -> None:
    async def sample() -> list[str]:
        asked = [ask(engine, "Name an animal.", rollout_id=n, temperature=1.0, max_tokens=8) for n in range(8)]
        return [reply.text for reply in await asyncio.gather(*asked)]

    first = await sample()
    assert len(set(first)) > 1
    alone = await ask(engine, "Name an animal.", rollout_id=0, temperature=1.0, max_tokens=8)
    assert alone.usage.prompt_tokens > 0
    assert alone.usage.completion_tokens <= 8


async def test_a_prompt_that_does_not_fit_is_an_error(engine: Engine) -> None:
    before = engine.ledger.totals().calls
    with pytest.raises(EngineError, match="context size") as caught:
        await ask(engine, "word " * 6000, max_tokens=8)
    assert caught.value.kind == "context"
    assert engine.ledger.totals().calls == before + 1
