"""Budgets: promises about calls, tokens and seconds that no request may break.

Before a request is sent, every budget in force sets aside its worst case: one call, and the most tokens that prompt and
reply can have. When it ends, what it really cost takes the place of that. Many requests in flight together can
therefore never spend more than the limit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
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
        self._started = time.monotonic()
        self.refused: str | None = None
        """What the first request that would have broken a limit was told; ``None`` as long as there was none."""

    @property
    def usage(self) -> Usage:
        """What was spent so far; requests in flight are not in it."""
        with self._lock:
            return self._usage

    @property
    def seconds(self) -> float:
        """Seconds since the budget was made."""
        return time.monotonic() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the limit; ``None`` without one."""
        return None if self.limits.max_seconds is None else self.limits.max_seconds - self.seconds

    def reserve(self, tokens: int) -> None:
        """Set aside one call and so many tokens.

        Raises:
            BudgetExceeded: The limits do not allow it.
        """
        limits = self.limits
        with self._lock:
            calls = self._usage.calls + self._calls_out
            spent = self._usage.tokens + self._tokens_out
            if limits.max_calls is not None and calls + 1 > limits.max_calls:
                self._refuse(f"The budget of {limits.max_calls} calls is used up. Raise --max-calls to go on.")
            if limits.max_tokens is not None and spent + tokens > limits.max_tokens:
                self._refuse(
                    f"The next request may take {tokens} tokens, and of the budget of {limits.max_tokens} tokens "
                    f"{spent} are spent or set aside. Raise --max-tokens to go on."
                )
            if limits.max_seconds is not None and self.seconds >= limits.max_seconds:
                self._refuse(
                    f"The budget of {limits.max_seconds:g} seconds is used up. Raise --max-seconds to go on."
                )
            self._calls_out += 1
            self._tokens_out += tokens

    def _refuse(self, message: str) -> NoReturn:
        self.refused = self.refused or message
        raise BudgetExceeded(message)

    def settle(self, tokens: int, cost: Usage) -> None:
        """Replace what `reserve` set aside by what the request cost."""
        with self._lock:
            self._calls_out -= 1
            self._tokens_out -= tokens
            self._usage += cost

    def charge(self, cost: Usage) -> None:
        """Add what was not reserved: an answer from the cache costs no request."""
        with self._lock:
            self._usage += cost


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
