"""What the planner asks."""

from typing import Literal

import dspy
from pydantic import BaseModel, Field


class PlannedPath(BaseModel):
    """One path, as the Engine writes it down."""

    mode: Literal["reason", "code"]
    approach: str
    steps: list[str] = Field(default_factory=list)
    confidence: float = 0.5

    def __str__(self) -> str:
        return f"{self.mode}: {self.approach}"


class DevisePaths(dspy.Signature):
    """Judge how hard the problem is and devise several distinct ways to solve it, the likeliest to succeed first.

    A path with mode "reason" is worked out in words alone. A path with mode "code" writes a Python program and runs it.
    Paths must differ in their idea, not only in their wording. For each give the approach in one sentence, its steps,
    and your confidence between 0 and 1 that it leads to the right answer. Do not solve the problem.
    """

    problem: str = dspy.InputField()
    number_of_paths: int = dspy.InputField(desc="how many paths to devise")
    difficulty: Literal["easy", "medium", "hard"] = dspy.OutputField()
    paths: list[PlannedPath] = dspy.OutputField(desc='One path a line, as "reason: approach" or "code: approach".')
