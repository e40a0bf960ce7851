"""Identical requests under way are one request; what nobody waits for any more is given up, and counted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from asking import Connect, arrived, ask, lines
from local_engine import SERVER_ERROR, LocalEngine, hang

from coda.errors import BudgetExceeded, EngineError
from coda.program.concurrency import on_background_loop
from coda.program.engine.budget import Budget, spending
from coda.program.engine.labels import labelled
from coda.program.engine.ledger import Ledger
from coda.program.engine.replies import capture
from coda.program.settings import Limits
from coda.program.types import Usage


async def test_identical_requests_are_one(connect: Connect) -> None:
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local)
        replies = await asyncio.gather(*(ask(engine, rollout_id=1, temperature=1.0) for _ in range(5)))
    assert {reply.text for reply in replies} == {"42"}
    assert local.requests == 1
    assert (engine.ledger.totals().calls, engine.ledger.totals().cached) == (1, 4)
    assert engine.budget.usage == engine.ledger.totals()


async def test_samples_are_not(connect: Connect) -> None:
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local)
        await asyncio.gather(*(ask(engine, rollout_id=sample, temperature=1.0) for sample in range(5)))
    assert local.requests == 5


async def test_one_after_the_other_they_are_two(connect: Connect) -> None:
    with LocalEngine() as local:
        engine = connect(local)
        await ask(engine)
        await ask(engine)
    assert local.requests == 2


async def test_who_joins_gets_the_reply_and_the_line_under_its_own_labels(connect: Connect, tmp_path: Path) -> None:
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local, ledger=Ledger(tmp_path / "calls.jsonl"))

        async def solve(problem: str) -> int:
            with labelled(problem=problem), capture() as replies:
                await ask(engine)
            return len(replies)

        assert list(await asyncio.gather(solve("a"), solve("b"))) == [1, 1]
    written = lines(tmp_path / "calls.jsonl")
    assert {(line["problem"], line["outcome"]) for line in written} == {("a", "ok"), ("b", "joined")}


async def test_who_joins_pays_nothing(connect: Connect) -> None:
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local)

        async def solve() -> Usage:
            with spending(Budget(Limits(max_calls=1))) as budget:
                await ask(engine)
            return budget.usage

        first, second = await asyncio.gather(solve(), solve())
    assert (first.calls, first.cached, second.calls, second.cached) == (1, 0, 0, 1)


async def test_a_failure_is_shared_too(connect: Connect) -> None:
    with LocalEngine(faults=lambda number, body: SERVER_ERROR, latency=0.02) as local:
        engine = connect(local, max_retries=0)
        results = await asyncio.gather(*(ask(engine) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [EngineError] * 3
    assert local.requests == 1


async def test_the_first_may_leave_while_others_wait(connect: Connect) -> None:
    with LocalEngine("42", latency=0.1) as local:
        engine = connect(local)
        first = asyncio.create_task(ask(engine))
        await arrived(local, 1)
        second = asyncio.create_task(ask(engine))
        await asyncio.sleep(0.01)
        first.cancel()
        assert (await second).text == "42"
        with pytest.raises(asyncio.CancelledError):
            await first
    assert (local.requests, local.abandoned) == (1, 0)


async def test_when_the_last_leaves_the_request_is_given_up_and_counted(connect: Connect, tmp_path: Path) -> None:
    with LocalEngine(faults=[hang()]) as local:
        engine = connect(local, ledger=Ledger(tmp_path / "calls.jsonl"))

        async def leave() -> Usage:
            with spending(Budget()) as budget:
                tasks = [asyncio.create_task(ask(engine)) for _ in range(2)]
                await arrived(local, 1)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return budget.usage

        assert await on_background_loop(leave()) == Usage(calls=1), "it is counted at once"
        await engine.settled()
        assert local.abandoned == 1, "the server has noticed"
    assert [line["outcome"] for line in lines(tmp_path / "calls.jsonl")] == ["cancelled"]
    assert engine.ledger.totals() == engine.budget.usage == Usage(calls=1)


async def test_a_slot_is_free_again_as_soon_as_its_request_is_given_up(connect: Connect) -> None:
    with LocalEngine("42", faults=[hang()]) as local:
        engine = connect(local, concurrency=1)
        stuck = asyncio.create_task(ask(engine, "stuck"))
        await arrived(local, 1)
        stuck.cancel()
        assert (await ask(engine, "next")).text == "42"


async def test_what_waits_for_a_slot_and_is_cancelled_was_never_sent(connect: Connect) -> None:
    with LocalEngine("42", latency=0.05) as local:
        engine = connect(local, concurrency=1)
        first = asyncio.create_task(ask(engine, "first"))
        await arrived(local, 1)
        waiting = [asyncio.create_task(ask(engine, f"{i}")) for i in range(3)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()
        waiting[2].cancel()
        assert [(await first).text, (await waiting[1]).text] == ["42", "42"]
        await engine.settled()
    assert local.requests == engine.ledger.totals().calls == engine.budget.usage.calls == 2


async def test_a_reply_that_was_on_its_way_is_still_counted(connect: Connect) -> None:
    """Given up at the very moment at which the server answers: both sides agree, whichever was first."""
    with LocalEngine("one two three", latency=0.03) as local:
        engine = connect(local)
        for delay in range(24, 42):
            task = asyncio.create_task(ask(engine, f"{delay}"))
            await arrived(local, delay - 23)
            await asyncio.sleep(delay / 1000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await engine.settled()
        counted = engine.ledger.totals()
        assert (counted.calls, counted.completion_tokens) == (local.requests, local.completion_tokens)
    assert engine.budget.usage == counted


async def test_who_joined_asks_again_where_only_the_others_budget_ended(connect: Connect) -> None:
    with LocalEngine("42", faults=[hang()]) as local:
        engine = connect(local)

        async def short() -> None:
            with spending(Budget(Limits(max_seconds=0.1))):
                await ask(engine)

        first = asyncio.create_task(short())
        await arrived(local, 1)
        second = asyncio.create_task(ask(engine))
        with pytest.raises(BudgetExceeded):
            await first
        assert (await second).text == "42"
    assert local.requests == 2


async def test_who_joined_leaves_when_its_own_seconds_end(connect: Connect) -> None:
    with LocalEngine("42", latency=0.4) as local:
        engine = connect(local)
        first = asyncio.create_task(ask(engine))
        await arrived(local, 1)
        with spending(Budget(Limits(max_seconds=0.05))), pytest.raises(BudgetExceeded, match="seconds ended"):
            await ask(engine)
        assert (await first).text == "42"


async def test_closing_ends_what_is_under_way(connect: Connect) -> None:
    with LocalEngine(faults=[hang()]) as local:
        engine = connect(local)
        task = asyncio.create_task(ask(engine))
        await arrived(local, 1)
        await engine.aclose()
        with pytest.raises(EngineError, match="was closed"):
            await task
    assert engine.ledger.totals().calls == 1
