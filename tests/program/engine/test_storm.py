"""Everything at once: many problems, faults of every kind, cancellations, limits. Nothing hangs, nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from asking import Connect, ask, lines
from local_engine import (
    BAD_GATEWAY,
    EMPTY,
    ERROR_BODY,
    INVALID_JSON,
    NULL_CONTENT,
    RATE_LIMIT,
    RESET,
    SERVER_ERROR,
    UNAVAILABLE,
    Answer,
    Fault,
    LocalEngine,
    hang,
)

from coda.errors import BudgetExceeded, CodaError, EngineError
from coda.program.engine import Engine
from coda.program.engine.budget import Budget, spending
from coda.program.engine.labels import labelled
from coda.program.engine.ledger import Ledger
from coda.program.engine.replies import Reply
from coda.program.settings import Limits

FAULTS = [
    RATE_LIMIT.with_headers(Retry_After="0.01"),
    SERVER_ERROR,
    BAD_GATEWAY,
    UNAVAILABLE,
    RESET,
    ERROR_BODY,
    NULL_CONTENT,
    EMPTY,
    INVALID_JSON,
    hang(0.3),
    Fault("cut off", answer=Answer("and so", finish="length")),
    Fault("thinking only", answer=Answer("<think>hmm", finish="length")),
]


class Weather:
    """30 % of the replies are faulty, the same ones in every run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, number: int, body: dict[str, Any]) -> Fault | None:
        return self.random.choice(FAULTS) if self.random.random() < 0.3 else None


def kind(result: object) -> str:
    kinds = (Reply, EngineError, BudgetExceeded, asyncio.CancelledError)
    return next((each.__name__ for each in kinds if isinstance(result, each)), repr(result))


async def solve(engine: Engine, problem: int, done: Counter[str]) -> None:
    """Ten calls, four deep; some branches are cancelled once the first of them has answered."""
    with labelled(problem=f"{problem}"), spending(Budget(Limits(max_calls=60))) as budget:
        try:
            await ask(engine, f"{problem} plan")
            for depth in range(2):
                branches = [asyncio.ensure_future(ask(engine, f"{problem} {depth} {i}")) for i in range(4)]
                if problem % 3 == 0:
                    await asyncio.wait(branches, return_when=asyncio.FIRST_COMPLETED)
                    for branch in branches:
                        branch.cancel()
                results = await asyncio.gather(*branches, return_exceptions=True)
                done.update(kind(result) for result in results)
            await ask(engine, f"{problem} verify")
        except CodaError as error:
            done[kind(error)] += 1
        done["problems"] += 1
        assert budget.usage.calls <= 60


@pytest.mark.parametrize("limits", [Limits(), Limits(max_calls=1500, max_tokens=200_000)], ids=["free", "limited"])
async def test_the_ledger_is_the_servers_count(connect: Connect, tmp_path: Path, limits: Limits) -> None:
    done: Counter[str] = Counter()
    with LocalEngine("the answer is 42", faults=Weather(7), latency=0.01) as local:
        engine = connect(local, ledger=Ledger(tmp_path / "calls.jsonl"), timeout=0.2, concurrency=100, limits=limits)
        async with asyncio.timeout(120):
            await asyncio.gather(*(solve(engine, problem, done) for problem in range(200)))
            await engine.settled()
        counted = (local.requests, local.prompt_tokens, local.completion_tokens)
    assert done["problems"] == 200
    assert set(done) <= {"problems", "Reply", "CancelledError", "EngineError", "BudgetExceeded"}
    total = engine.ledger.totals()
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == counted
    assert engine.budget.usage == total
    written = Counter(line["outcome"] for line in lines(tmp_path / "calls.jsonl"))
    assert sum(written[outcome] for outcome in ("ok", "truncated", "failed", "cancelled")) == total.calls
    assert written["cancelled"] > 20
    if limits.max_calls is not None and limits.max_tokens is not None:
        assert total.calls <= limits.max_calls
        assert total.tokens <= limits.max_tokens
        assert done["BudgetExceeded"] > 0
    else:
        assert done["BudgetExceeded"] == 0
        assert done["EngineError"] < 30


async def test_requests_that_go_out_twice_pay_once(connect: Connect, tmp_path: Path) -> None:
    """Optimizers submit stragglers again while the first is still under way."""
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local, cache_dir=tmp_path)
        await asyncio.gather(*(ask(engine, f"{i % 10}") for i in range(40)))
        await asyncio.gather(*(ask(engine, f"{i % 10}") for i in range(40)))
    assert local.requests == 10
    assert json.loads(engine.ledger.totals().model_dump_json())["cached"] == 70
