"""What has happened to a problem so far, across passes and rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from coda.program.stage import Trouble
from coda.program.types import Attempt, Plan


@dataclass(frozen=True)
class Pass:
    """One pass through planner, executor and reflector.

    Attributes:
        plan: The paths that it was to follow.
        attempts: What came of them, the reflection's attempt last.
    """

    plan: Plan
    attempts: tuple[Attempt, ...]


@dataclass
class Story:
    """A problem's passes, in rounds.

    Attributes:
        troubles: What stopped requests.
        plan: The paths of all passes.
        attempts: The attempts of all passes, in order.
        rounds: Rounds that were begun.
        restatements: The problem in other words, for each round after the first.
        early_exit: Whether the search ended because attempts agreed.
    """

    troubles: Sequence[Trouble]
    plan: Plan = field(default_factory=lambda: Plan(paths=()))
    attempts: tuple[Attempt, ...] = ()
    rounds: int = 0
    restatements: list[str] = field(default_factory=list)
    early_exit: bool = False

    def begin(self) -> None:
        """Begin a round."""
        self.rounds += 1

    def add(self, done: Pass) -> None:
        """Add a pass of the current round."""
        self.plan = self.plan.followed_by(done.plan)
        self.attempts += tuple(attempt.model_copy(update={"round": self.rounds}) for attempt in done.attempts)

    def hopeless(self, more: Sequence[Attempt] = ()) -> bool:
        """Whether going on is no use: a budget has ended, or the Engine has failed every attempt.

        Args:
            more: Attempts that are not part of the story yet.
        """
        attempts = (*self.attempts, *more)
        failed = bool(attempts) and all(attempt.finish == "failed" for attempt in attempts)
        return failed or any(trouble.kind == "budget" for trouble in self.troubles)
