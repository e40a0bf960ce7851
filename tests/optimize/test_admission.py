"""Problems begin as long as the budgets can be expected to last for them."""

from __future__ import annotations

import asyncio

import pytest

from coda.optimize.admission import Admission
from coda.program.engine.budget import Budget
from coda.program.settings import Limits
from coda.program.types import Usage


async def running_at_once(limits: Limits, cost: Usage, problems: int = 20) -> list[int]:
    """Let problems of a known cost in; how many were under way when each began, itself included."""
    budget = Budget(limits)
    admission, seen, running = Admission([budget]), [], 0

    async def problem() -> None:
        nonlocal running
        meter = Budget()
        async with admission.admit(meter):
            running += 1
            seen.append(running)
            await asyncio.sleep(0.001)
            for each in (budget, meter):
                each.charge(cost)
            running -= 1

    await asyncio.gather(*(problem() for _ in range(problems)))
    return seen


async def test_without_limits_all_begin_at_once() -> None:
    assert await running_at_once(Limits(), Usage(calls=5)) == list(range(1, 21))


async def test_with_a_large_budget_all_begin_at_once() -> None:
    assert max(await running_at_once(Limits(max_calls=1000), Usage(calls=5))) == 20


@pytest.mark.parametrize("limits", [Limits(max_calls=40), Limits(max_tokens=4000)])
async def test_a_small_budget_lets_one_in_then_as_many_as_it_lasts_for(limits: Limits) -> None:
    seen = await running_at_once(limits, Usage(calls=5, prompt_tokens=300, completion_tokens=200))
    assert seen[0] == 1
    assert max(seen) == 7  # seven more at five calls, or 500 tokens, each
    assert len(seen) == 20  # nobody waits for ever: the budget itself refuses the rest


async def test_a_problem_that_fails_makes_room() -> None:
    admission = Admission([Budget(Limits(max_calls=10))])

    async def fails() -> None:
        async with admission.admit(Budget()):
            raise ValueError

    for _ in range(3):
        with pytest.raises(ValueError):
            await fails()
