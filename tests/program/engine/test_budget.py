"""A budget is a promise: with however many requests in flight, no limit is ever broken."""

from __future__ import annotations

import asyncio
import re

import pytest
from asking import Connect, arrived, ask
from local_engine import Answer, LocalEngine, hang

from coda.errors import BudgetExceeded, UsageError
from coda.program.engine.budget import Budget, budgets_in_force, spending
from coda.program.engine.config import Prices
from coda.program.settings import Limits
from coda.program.types import Usage


def test_without_limits_it_is_a_meter() -> None:
    budget = Budget()
    budget.reserve(10**9)
    budget.settle(10**9, Usage(calls=1, prompt_tokens=5, completion_tokens=7))
    assert budget.usage == Usage(calls=1, prompt_tokens=5, completion_tokens=7)
    assert budget.seconds_left is None
    assert budget.refused is None


def test_what_is_set_aside_counts_until_it_is_settled() -> None:
    budget = Budget(Limits(max_tokens=100))
    budget.reserve(60)
    with pytest.raises(BudgetExceeded, match=r"may take 60 tokens, and of the budget of 100 tokens 60 are spent"):
        budget.reserve(60)
    budget.settle(60, Usage(calls=1, prompt_tokens=20, completion_tokens=10))
    budget.reserve(60)
    assert budget.usage.tokens == 30


def test_a_request_that_fits_once_others_are_settled_is_told_to_wait() -> None:
    budget = Budget(Limits(max_tokens=100))
    budget.reserve(60)
    assert budget.must_wait(60)
    assert not budget.must_wait(40)
    with pytest.raises(BudgetExceeded):
        budget.must_wait(101)


def test_a_request_that_was_never_sent_costs_nothing() -> None:
    budget = Budget(Limits(max_calls=1))
    budget.reserve(5)
    budget.release(5)
    budget.reserve(5)
    assert budget.usage == Usage()


def test_the_first_refusal_is_kept() -> None:
    budget = Budget(Limits(max_calls=1))
    budget.reserve(0)
    with pytest.raises(BudgetExceeded, match=r"1 calls is used up. Raise --max-calls"):
        budget.reserve(0)
    assert budget.refused == "The budget of 1 calls is used up. Raise --max-calls to go on."


def test_budgets_nest() -> None:
    outer, inner = Budget(), Budget()
    with spending(outer), spending(inner):
        assert budgets_in_force() == (outer, inner)
    assert budgets_in_force() == ()


async def test_calls_are_never_exceeded_by_requests_in_flight(connect: Connect) -> None:
    with LocalEngine(latency=0.05) as local:
        engine = connect(local, limits=Limits(max_calls=7))
        results = await asyncio.gather(*(ask(engine, f"{i}") for i in range(20)), return_exceptions=True)
    assert local.requests == 7
    assert sum(isinstance(result, BudgetExceeded) for result in results) == 13
    assert engine.budget.usage.calls == 7


async def test_tokens_are_never_exceeded_and_used_as_far_as_they_go(connect: Connect) -> None:
    """Each request may take about 500 tokens and takes 20: one after the other, many fit; all at once, few would."""
    with LocalEngine(Answer("fine", prompt_tokens=10, completion_tokens=10), latency=0.01) as local:
        engine = connect(local, limits=Limits(max_tokens=800))
        results = await asyncio.gather(
            *(ask(engine, f"{i}", max_tokens=100) for i in range(30)), return_exceptions=True
        )
    answered = sum(not isinstance(result, BaseException) for result in results)
    assert engine.budget.usage.tokens == 20 * answered == local.prompt_tokens + local.completion_tokens
    assert 15 <= answered < 30  # (800 - 450) / 20 = 17: the last ones' worst case no longer fits
    assert {type(result) for result in results if isinstance(result, BaseException)} == {BudgetExceeded}


async def test_a_better_reply_that_does_not_fit_is_not_the_budgets_end(connect: Connect) -> None:
    with LocalEngine(" ".join(map(str, range(150)))) as local:
        engine = connect(local, limits=Limits(max_calls=1))
        assert (await ask(engine, max_tokens=100)).finish == "length"
        assert engine.budget.refused is None
        with pytest.raises(BudgetExceeded):
            await ask(engine, "next")
        assert engine.budget.refused is not None
    assert local.requests == 1


async def test_money_is_never_exceeded(connect: Connect) -> None:
    """A reply of 10 + 10 tokens costs 0.05 USD; its worst case, some 450 + 100 tokens, about 0.8."""
    prices = Prices(prompt=1000, completion=4000)
    with LocalEngine(Answer("fine", prompt_tokens=10, completion_tokens=10), latency=0.01) as local:
        engine = connect(local, limits=Limits(max_usd=1.5), prices=prices)
        results = await asyncio.gather(
            *(ask(engine, f"{i}", max_tokens=100) for i in range(30)), return_exceptions=True
        )
    answered = sum(not isinstance(result, BaseException) for result in results)
    assert engine.budget.usd == pytest.approx(0.05 * answered)
    assert 5 <= answered < 30
    assert engine.budget.refused is not None
    assert re.fullmatch(
        r"The next request may cost 0\.\d{4} USD, and of the budget of 1\.5 USD 0\.\d{4} are spent or set aside\. "
        r"Raise --max-usd to go on\.",
        engine.budget.refused,
    )


async def test_a_limit_on_money_needs_prices(connect: Connect) -> None:
    with LocalEngine() as local:
        engine = connect(local)
        with spending(Budget(Limits(max_usd=1.0))), pytest.raises(UsageError, match="needs the Engine's prices"):
            await ask(engine)
    assert local.requests == 0


async def test_every_budget_around_a_request_is_charged_and_can_refuse(connect: Connect) -> None:
    with LocalEngine() as local:
        engine = connect(local, limits=Limits(max_calls=10))
        with spending(Budget(Limits(max_calls=2))) as problem, spending(Budget()) as meter:
            await ask(engine, "1")
            await ask(engine, "2")
            with pytest.raises(BudgetExceeded):
                await ask(engine, "3")
        await ask(engine, "4")
    assert (problem.usage.calls, meter.usage.calls, engine.budget.usage.calls, local.requests) == (2, 2, 3, 3)


async def test_failed_requests_are_charged_too(connect: Connect) -> None:
    with LocalEngine(faults=lambda number, body: hang(0)) as local:
        engine = connect(local, limits=Limits(max_calls=3), max_retries=5)
        with pytest.raises(BudgetExceeded):
            await ask(engine)
    assert local.requests == engine.budget.usage.calls == 3


async def test_seconds_bound_a_request_that_is_under_way(connect: Connect) -> None:
    with LocalEngine(faults=[hang()]) as local:
        engine = connect(local)
        with spending(Budget(Limits(max_seconds=0.1))) as problem:
            with pytest.raises(BudgetExceeded, match=r"0.1 seconds ended while a request was under way"):
                await ask(engine)
            assert problem.usage.calls == 1
            assert problem.refused is not None
            with pytest.raises(BudgetExceeded, match=r"budget of 0.1 seconds"):
                await ask(engine)
        await engine.settled()
    assert local.requests == engine.ledger.totals().calls == 1


async def test_seconds_bound_waiting_for_a_slot(connect: Connect) -> None:
    with LocalEngine(faults=[hang()]) as local:
        engine = connect(local, concurrency=1)
        first = asyncio.create_task(ask(engine, "takes the only slot"))
        await arrived(local, 1)
        with spending(Budget(Limits(max_seconds=0.1))), pytest.raises(BudgetExceeded):
            await ask(engine, "waits")
        first.cancel()
        await engine.settled()
    assert local.requests == 1
