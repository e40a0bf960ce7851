"""Budgets: promises about calls, tokens, seconds and money that no request may break.

Before a request is sent, every budget in force sets aside its worst case: one call, and the most tokens that prompt and
reply can have. When it ends, what it really cost takes the place of that. Many requests in flight together can
therefore never spend more than the limit. A request that does not fit only because of what is set aside for others
waits for them: they will cost less than their worst case.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from coda.errors import BudgetExceeded
from coda.program.settings import Limits
from coda.program.types import Usage


class Budget:
    """Limits, and what was spent of them. Without limits it is a meter.

    Args:
        limits: What may be spent. Seconds count from the budget's making.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._lock = threading.Lock()
        self._usage = Usage()
        self._calls_out = 0
        self._tokens_out = 0
        self._usd = 0.0
        self._usd_out = 0.0
        self._started = time.monotonic()
        self._expired = False
        self._waiting: list[asyncio.Future[None]] = []
        self.refused: str | None = None
        """What the first request that would have broken a limit was told; ``None`` as long as there was none."""

    @property
    def usage(self) -> Usage:
        """What was spent so far; requests in flight are not in it."""
        with self._lock:
            return self._usage

    @property
    def usd(self) -> float:
        """What was spent so far in USD, by Engines whose prices are known."""
        with self._lock:
            return self._usd

    @property
    def seconds(self) -> float:
        """Seconds since the budget was made."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the limit; ``None`` without one."""
        if self.limits.max_seconds is None:
            return None
        return 0.0 if self._expired else self.limits.max_seconds - self.seconds

    def reserve(self, tokens: int, usd: float = 0.0) -> None:
        """Set aside one call, so many tokens, and so much money.

        Raises:
            BudgetExceeded: The limits do not allow it.
        """
        with self._lock:
            self._check(tokens, usd, self._tokens_out, self._usd_out)
            self._calls_out += 1
            self._tokens_out += tokens
            self._usd_out += usd

    def must_wait(self, tokens: int, usd: float = 0.0, *, optional: bool = False) -> bool:
        """Whether a request of so many tokens fits only once requests in flight have ended, and cost less than feared.

        Args:
            tokens: The most that it can take.
            usd: The most that it can cost.
            optional: Whether the work can go on without it; then its refusal is not noted as the budget's end.

        Raises:
            BudgetExceeded: It will not fit then either.
        """
        with self._lock:
            refused = self.refused
            try:
                self._check(tokens, usd, 0, 0.0)
            except BudgetExceeded:
                self.refused = refused if optional else self.refused
                raise
            return _over(self.limits.max_tokens, self._usage.tokens + self._tokens_out + tokens) or _over(
                self.limits.max_usd, self._usd + self._usd_out + usd
            )

    async def change(self) -> None:
        """Wait until a request in flight has ended."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def settle(self, tokens: int, cost: Usage) -> None:
        """Replace so many tokens and ``cost.calls`` calls of what `reserve` set aside by what they really cost."""
        with self._lock:
            self._calls_out -= cost.calls
            self._tokens_out -= tokens
            self._usage += cost
        self._wake()

    def pay(self, set_aside: float, usd: float) -> None:
        """Replace so much money of what `reserve` set aside by what was really spent."""
        with self._lock:
            self._usd_out -= set_aside
            self._usd += usd
        self._wake()

    def release(self, tokens: int, usd: float = 0.0) -> None:
        """Give back what `reserve` set aside: the request was never sent."""
        with self._lock:
            self._calls_out -= 1
            self._tokens_out -= tokens
            self._usd_out -= usd
        self._wake()

    def charge(self, cost: Usage) -> None:
        """Add what was not reserved: an answer from the cache costs no request."""
        with self._lock:
            self._usage += cost

    def expired(self) -> BudgetExceeded:
        """Note that the seconds ended while a request was under way, and return the error that says so."""
        message = (
            f"The budget of {self.limits.max_seconds:g} seconds ended while a request was under way. "
            "Raise --max-seconds to go on."
        )
        self._expired = True  # a timer may ring a little before the clock is there
        self.refused = self.refused or message
        return BudgetExceeded(message)

    def _check(self, tokens: int, usd: float, tokens_aside: int, usd_aside: float) -> None:
        limits = self.limits
        if _over(limits.max_calls, self._usage.calls + self._calls_out + 1):
            self._refuse(f"The budget of {limits.max_calls} calls is used up. Raise --max-calls to go on.")
        spent = self._usage.tokens + tokens_aside
        if _over(limits.max_tokens, spent + tokens):
            self._refuse(
                f"The next request may take {tokens} tokens, and of the budget of {limits.max_tokens} tokens "
                f"{spent} are spent or set aside. Raise --max-tokens to go on."
            )
        if _over(limits.max_usd, self._usd + usd_aside + usd):
            self._refuse(
                f"The next request may cost {usd:.4f} USD, and of the budget of {limits.max_usd:g} USD "
                f"{self._usd + usd_aside:.4f} are spent or set aside. Raise --max-usd to go on."
            )
        if limits.max_seconds is not None and (self._expired or self.seconds >= limits.max_seconds):
            self._refuse(f"The budget of {limits.max_seconds:g} seconds is used up. Raise --max-seconds to go on.")

    def _refuse(self, message: str) -> NoReturn:
        self.refused = self.refused or message
        raise BudgetExceeded(message)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _over(limit: float | None, value: float) -> bool:
    return limit is not None and value > limit


class Reservation:
    """What several budgets have set aside for one request; made by `reserve_in_all`."""

    def __init__(self, budgets: Sequence[Budget], tokens: int, usd: float) -> None:
        self._budgets = budgets
        self._tokens = tokens
        self._usd = usd
        self._counted = False

    def count_call(self) -> None:
        """Count the call at once; what it cost in tokens is not known yet."""
        for budget in self._budgets:
            budget.settle(0, Usage(calls=1))
        self._counted = True

    def settle(self, cost: Usage, usd: float) -> None:
        """Put in its place what the request cost."""
        if self._counted:
            cost = cost.model_copy(update={"calls": 0})
        for budget in self._budgets:
            budget.settle(self._tokens, cost)
            if self._usd or usd:
                budget.pay(self._usd, usd)

    def release(self) -> None:
        """Give it back: the request was never sent."""
        for budget in self._budgets:
            budget.release(self._tokens, self._usd)


async def reserve_in_all(
    budgets: Sequence[Budget], tokens: int, usd: float = 0.0, *, optional: bool = False
) -> Reservation:
    """Set aside one call, so many tokens and so much money in all budgets at once, as soon as they allow it.

    Args:
        budgets: The budgets in force.
        tokens: The most that the request can take.
        usd: The most that it can cost.
        optional: Whether the work can go on without it.

    Raises:
        BudgetExceeded: One of them never will.
    """
    while True:
        # All are asked before any is waited for: what one refuses need not wait for another.
        waits = [budget for budget in budgets if budget.must_wait(tokens, usd, optional=optional)]
        if not waits:
            break
        await waits[0].change()
    for budget in budgets:
        budget.reserve(tokens, usd)
    return Reservation(budgets, tokens, usd)


_budgets: ContextVar[tuple[Budget, ...]] = ContextVar("coda_budgets", default=())


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Check and charge all requests within the block against this budget too."""
    token = _budgets.set((*_budgets.get(), budget))
    try:
        yield budget
    finally:
        _budgets.reset(token)


def budgets_in_force() -> tuple[Budget, ...]:
    """The budgets of the blocks around this point, the outermost first."""
    return _budgets.get()
