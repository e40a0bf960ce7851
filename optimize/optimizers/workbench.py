"""What an optimizer is given to work with, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from coda.data.examples import Example
from coda.optimize.config import CompileConfig
from coda.program.conductor import Coda
from coda.program.engine import Engine
from coda.program.engine.budget import Budget
from coda.program.settings import Limits
from coda.program.types import Usage

KEPT = 0.2
"""The share of the time and money left that is kept for an optimizer's finalists."""


@dataclass(frozen=True)
class Candidate:
    """A program under optimization.

    Attributes:
        name: How it came about, such as ``labelled-3`` or ``gepa-1``.
        program: It.
    """

    name: str
    program: Coda


@dataclass(frozen=True)
class Plan:
    """What an optimizer will do at most, for the estimate.

    Attributes:
        rollouts: Training problems that it runs through the pipeline.
        validations: Candidates that are then measured on validation.
    """

    rollouts: int
    validations: int


class Optimizer(Protocol):
    """Makes candidates. The compiler asks for one, measures it on validation, and asks for the next."""

    name: str
    needs: tuple[str, ...]
    """Modules of an optional extra without which it cannot run."""

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """What it will do at most, with so many training problems."""
        ...

    def check(self, train: Sequence[Example]) -> None:
        """Make sure, before anything is spent, that these problems are enough for it.

        Raises:
            UsageError: They are not.
        """

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """Make candidates one after the other; each is paid for only when it is asked for."""
        ...


@dataclass
class Workbench:
    """What an optimizer works with.

    Attributes:
        program: The program to start from.
        train: Training examples.
        config: How hard to try.
        budget: What the whole search may spend.
        validation_cost: What measuring one candidate on validation costs; kept for each finalist.
        teacher: The Engine that makes demos, where it is another.
        reflection: The Engine that writes instructions, where it is another.
        best: The best program measured so far; the compiler sets it.
        ended: Why runs of optimizers ended early.
    """

    program: Coda
    train: tuple[Example, ...]
    config: CompileConfig
    budget: Budget
    validation_cost: Usage
    teacher: Engine | None = None
    reflection: Engine | None = None
    best: Coda = field(init=False)
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.best = self.program

    def allowance(self, share: float = 1.0) -> Limits:
        """What one run of an optimizer may spend: a share of what is left once its finalists can be paid for.

        What they will take in time and money is not known: a fifth of what is left is kept for that (`KEPT`).
        """
        limits, used, finalists = self.budget.limits, self.budget.usage, self.config.finalists
        seconds, usd = self.budget.seconds_left, _left(limits.max_usd, self.budget.usd)
        return Limits(
            max_seconds=None if seconds is None else max(1e-3, seconds * share * (1 - KEPT)),
            max_usd=None if usd is None else max(1e-9, usd * share * (1 - KEPT)),
            max_calls=_part(limits.max_calls, used.calls + finalists * self.validation_cost.calls, share),
            max_tokens=_part(limits.max_tokens, used.tokens + finalists * self.validation_cost.tokens, share),
        )

    def spent(self, before: Usage) -> float:
        """The share of the budget's calls or tokens, whichever is more, that was spent since ``before``."""
        limits, used = self.budget.limits, self.budget.usage
        calls = _share(limits.max_calls, before.calls, used.calls)
        return max(calls, _share(limits.max_tokens, before.tokens, used.tokens))


def _share(limit: int | None, before: int, now: int) -> float:
    return 0.0 if limit is None else (now - before) / max(1, limit - before)


def _left(limit: float | None, spent: float) -> float | None:
    return None if limit is None else limit - spent


def _part(limit: int | None, spent: int, share: float) -> int | None:
    return None if limit is None else max(1, int((limit - spent) * share))
