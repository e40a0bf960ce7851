"""The hard stop: an optimizer that has reached a limit, or whose Engine is down, ends at once.

DSPy's optimizers catch ordinary exceptions, score the problem with 0 and go on, so that an exhausted budget or an
outage would end in a "best" program that nobody measured. `Halted` is no ordinary exception: nothing of theirs
catches it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from coda.errors import BudgetExceeded, EngineError
from coda.program.engine import Engine
from coda.program.engine.budget import Budget, budgets_in_force, spending
from coda.program.engine.lm import EngineLM

FAILURES = 10
"""So many failed requests in a row, each repeated as often as the Engine allows, and the Engine counts as down."""

_HOPELESS = frozenset({"auth", "billing", "unknown-model", "configuration"})
"""Faults that no other request will be spared."""

_HARMLESS = frozenset({"context", "content-filter", "bad-reply", "bad-request"})
"""Faults of one request: the Engine answered."""


class Halted(BaseException):
    """Ends an optimizer at once. Not an `Exception`, since optimizers catch those.

    Attributes:
        error: What halted it: a budget or an Engine that is down; ``None`` where it has done all that it may.
    """

    def __init__(self, error: BudgetExceeded | EngineError | Exception | None = None) -> None:
        super().__init__(str(error or "all rollouts are made"))
        self.error = error


class Gate:
    """What every rollout and every request of an optimizer passes; it shuts for good.

    Args:
        budgets: What the optimizer may spend. They are in force in whatever thread it works.
        rollouts: How many problems it may run through the pipeline.
    """

    def __init__(self, budgets: Sequence[Budget], rollouts: int) -> None:
        self.budgets = tuple(budgets)
        self.rollouts = rollouts
        self.made = 0
        self.halted: Halted | None = None
        self._failures = 0
        self._lock = threading.Lock()
        self._asking = 0
        self._idle = threading.Condition()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A request passes; `shut` waits for it.

        Raises:
            Halted: The optimizer has to end.
        """
        with self._idle:
            self.check()
            self._asking += 1
        try:
            yield
        finally:
            with self._idle:
                self._asking -= 1
                self._idle.notify_all()

    def shut(self) -> None:
        """Let nothing pass any more, and wait for what has passed: threads that an optimizer left behind end then."""
        with self._idle:
            self.halted = self.halted or Halted()
            self._idle.wait_for(lambda: self._asking == 0)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Put its budgets in force, where they are not yet: DSPy's threads do not inherit what is."""
        with ExitStack() as stack:
            for budget in self.budgets:
                if budget not in budgets_in_force():
                    stack.enter_context(spending(budget))
            yield

    def begin_rollout(self) -> None:
        """Let one more problem be run.

        Raises:
            Halted: The optimizer has to end.
        """
        self.check()
        with self._lock:
            self.made += 1
            over = self.made > self.rollouts
        if over:
            self.halt(None)

    def check(self) -> None:
        """Pass, or not.

        Raises:
            Halted: The optimizer has to end.
        """
        if self.halted is not None:
            raise Halted(self.halted.error)

    def halt(self, error: Exception | None) -> None:
        """Shut.

        Raises:
            Halted: Always.
        """
        with self._lock:
            self.halted = self.halted or Halted(error)
        raise Halted(self.halted.error)

    def answered(self) -> None:
        """Note that the Engine works."""
        self._failures = 0

    def refused(self, error: BudgetExceeded, budget: Budget) -> None:
        """Note that a request was refused; a limit on one problem is no reason to end.

        Raises:
            Halted: It was a budget of the whole search, or of the run.
        """
        if any(each.refused is not None for each in (*self.budgets, budget)):
            self.halt(error)

    def failed(self, error: EngineError) -> None:
        """Note that the Engine failed.

        Raises:
            Halted: It is down.
        """
        if error.kind in _HARMLESS:
            return
        with self._lock:
            self._failures += 1
            down = self._failures >= FAILURES or error.kind in _HOPELESS
        if down:
            self.halt(error)


class GatedLM(EngineLM):
    """An Engine's LM behind a gate. Copies of it, with other settings, are behind the same one."""

    def __init__(self, engine: Engine, gate: Gate) -> None:
        super().__init__(engine)
        self.gate = gate

    async def _answer(self, prompt: Any, messages: Any, options: dict[str, Any]) -> Any:
        with self.gate.asking(), self.gate.spending():
            try:
                reply = await super()._answer(prompt, messages, options)
            except BudgetExceeded as error:
                self.gate.refused(error, self.coda.budget)
                raise
            except EngineError as error:
                self.gate.failed(error)
                raise
        self.gate.answered()
        return reply
