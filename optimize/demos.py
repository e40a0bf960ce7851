"""Few-shot demos: where they come from, and which steps of a trace are worth imitating."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import dspy

from coda.data.benchmarks import Example
from coda.program.adapters import SALVAGED
from coda.program.conductor import Coda
from coda.program.presentation import exhibit, statement
from coda.program.types import Attempt, Solution

Step = tuple[dspy.Predict, dict[str, Any], dspy.Prediction]
"""One call in a DSPy trace: the predictor, its inputs, its outputs."""

Demos = dict[str, list[dspy.Example]]
"""Demos by the name of their predictor."""


def labelled(examples: Sequence[Example], k: int, seed: int) -> Demos:
    """Make demos from the reference programs of training examples.

    They are the seed of all others: an Engine that writes no right program unaided has no right trace to learn from.

    Args:
        examples: Training examples; those without a reference program are passed over.
        k: How many demos.
        seed: Which ones.
    """
    usable = [example for example in examples if example.program]
    chosen = random.Random(seed).sample(usable, min(k, len(usable)))
    demos: Demos = {}
    for example in chosen:
        predictor = "executor.function" if example.problem.task == "code" else "executor.code"
        demo = dspy.Example(problem=statement(example.problem), approach="", program=example.program)
        demos.setdefault(predictor, []).append(demo)
    return demos


def with_demos(program: Coda, demos: Demos) -> Coda:
    """A copy of the program whose predictors have these demos; predictors not named keep theirs."""
    copy: Coda = program.deepcopy()
    for name, predictor in copy.named_predictors():
        if name in demos:
            predictor.demos = list(demos[name])
    return copy


def demos_of(program: Coda) -> Demos:
    """The demos that a program holds now."""
    return {name: list(predictor.demos) for name, predictor in program.named_predictors() if predictor.demos}


def worth_imitating(step: Step, good: Sequence[Attempt], right: bool) -> bool:
    """Whether a call's own output contributed to a right result.

    A call that produced an attempt, or a part of one, must have produced a ``good`` one; a judge must have told good
    attempts from others; any other call (a plan, say) counts as good where the final answer was ``right``. Salvaged and
    incomplete replies never count.
    """
    predictor, inputs, outputs = step
    values = {name: outputs.get(name) for name in predictor.signature.output_fields}
    if outputs.get(SALVAGED) or any(value in (None, "", []) for value in values.values()):
        return False
    if "program" in values:
        return any(attempt.code == values["program"] for attempt in good)
    if "answer" in values:
        return any(_stated(attempt, values) for attempt in good if attempt.code is None)
    if "parts" in values:
        return any(attempt.parts for attempt in good)
    shown = {exhibit(attempt) for attempt in good}
    if "verdict" in values:
        return bool(values["verdict"] == "right") == (inputs.get("attempt") in shown)
    if "better" in values:
        sides = {side: inputs.get(side) in shown for side in ("first", "second")}
        return sides.pop(str(values["better"]), False) and not any(sides.values())
    return right


def every_attempt(solution: Solution) -> list[Attempt]:
    """All attempts of a solution, those that were refined away included."""
    return [each for attempt in solution.attempts for each in (*attempt.earlier, attempt)]


def _stated(attempt: Attempt, values: dict[str, Any]) -> bool:
    """Whether the attempt, or a part of it, came from a reply with these fields."""
    if any(part.answer == str(values["answer"]).strip() for part in attempt.parts):
        return True
    return any(value and attempt.reasoning.strip() == str(value).strip() for value in values.values()) or (
        attempt.answer is not None and attempt.answer in str(values["answer"])
    )
