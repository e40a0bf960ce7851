"""Which problems may begin while a budget is running out: it is spent on whole problems, not on many halves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coda.program.engine.budget import Budget
from coda.program.types import Usage

DEAR = Usage(calls=50, prompt_tokens=100_000, completion_tokens=100_000)
"""What a problem is taken to cost until the first one has ended."""


class Admission:
    """Lets a problem begin only when the budgets can be expected to last for it and for those under way.

    A problem is always let in when no other is under way: the budgets themselves then decide.

    Args:
        budgets: The budgets of the run; those without limits on calls or tokens hold nobody up.
    """

    def __init__(self, budgets: Sequence[Budget]) -> None:
        self._budgets = budgets
        self._running = 0
        self._ended = 0
        self._spent = Usage()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def admit(self, meter: Budget) -> AsyncIterator[None]:
        """Wait for admission; the block is the problem's work, and ``meter`` knows its cost when it ends."""
        async with self._changed:
            await self._changed.wait_for(self._has_room)
            self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._ended += 1
            self._spent += meter.usage
            async with self._changed:
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._running == 0 or all(self._lasts(budget) for budget in self._budgets)

    def _lasts(self, budget: Budget) -> bool:
        limits, used, problems = budget.limits, budget.usage, self._running + 1
        cost, ended = (self._spent, self._ended) if self._ended else (DEAR, 1)
        return (limits.max_calls is None or limits.max_calls - used.calls >= problems * cost.calls / ended) and (
            limits.max_tokens is None or limits.max_tokens - used.tokens >= problems * cost.tokens / ended
        )
