"""What a grader says."""

from __future__ import annotations

from pydantic import Field

from coda.program.types import Frozen


class Grade(Frozen):
    """How good an answer is, and why: optimizers read the feedback."""

    score: float = Field(ge=0.0, le=1.0)
    feedback: str = ""
    """What was expected and what came; for programs, the failing test."""

    @property
    def correct(self) -> bool:
        """Whether the answer is right."""
        return self.score >= 1.0


def no_answer(expected: str) -> Grade:
    """The grade of a problem that was not answered."""
    return Grade(score=0.0, feedback=f"There is no answer. Expected {expected}.")


def compared(right: bool, expected: str, got: str) -> Grade:
    """The grade of an answer that was compared with the reference."""
    return Grade(score=float(right), feedback=f"{got} is right." if right else f"Expected {expected}, got {got}.")
