"""What the planner asks."""

from typing import Any, Literal

import dspy
from pydantic import BaseModel, Field, model_validator


class PlannedStep(BaseModel):
    """One step, as the Engine writes it down."""

    action: str
    confidence: float = 0.5

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"action": value} if isinstance(value, str) else value


class PlannedPath(BaseModel):
    """One path, as the Engine writes it down."""

    mode: Literal["reason", "code", "decompose"]
    approach: str
    steps: list[PlannedStep] = Field(default_factory=list)
    confidence: float | None = None

    def __str__(self) -> str:
        return f"{self.mode}: {self.approach}"


class DevisePaths(dspy.Signature):
    """Judge how hard the problem is and devise several distinct ways to solve it, the likeliest to succeed first.

    A path with mode "reason" is worked out in words alone. A path with mode "code" writes a Python program and runs it.
    A path with mode "decompose", for hard problems, solves the parts of the problem one after the other and puts them
    together; its steps are the parts. Paths must differ in their idea, not only in their wording. For each give the
    approach in one sentence, its steps, and your confidence between 0 and 1 in every step and in the whole. Do not
    solve the problem.
    """

    problem: str = dspy.InputField()
    number_of_paths: int = dspy.InputField(desc="how many paths to devise")
    difficulty: Literal["easy", "medium", "hard"] = dspy.OutputField()
    paths: list[PlannedPath] = dspy.OutputField(
        desc='One path a line, as "reason: approach", "code: approach" or "decompose: approach".'
    )
