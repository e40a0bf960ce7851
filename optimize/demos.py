"""Few-shot demos: where they come from, and which steps of a trace are worth imitating."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import dspy

from coda.data.benchmarks import Example
from coda.data.grading import grade
from coda.program.adapters import SALVAGED
from coda.program.conductor import Coda
from coda.program.presentation import statement
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


class Accept:
    """The metric by which DSPy's bootstrapping keeps a trace, and what it may learn from it.

    DSPy makes a demo of *every* call in a trace whose final answer was right, wrong attempts included. Called as
    ``accept(gold, prediction, trace)``, this metric removes from ``trace`` the calls that did not lead to a right
    result themselves, before DSPy reads it.
    """

    def __call__(self, gold: dspy.Example, prediction: dspy.Prediction, trace: list[Step] | None = None) -> bool:
        """Grade the answer, and prune the trace to the steps worth imitating."""
        example: Example = gold.example
        right = grade(example, prediction.answer).score >= 1.0
        if trace is not None:
            solution: Solution = prediction.solution
            good = [attempt for attempt in every_attempt(solution) if grade(example, attempt.answer).score >= 1.0]
            trace[:] = [step for step in trace if worth_imitating(step, good, right)]
        return right


def worth_imitating(step: Step, good: Sequence[Attempt], right: bool) -> bool:
    """Whether a call's own output contributed to a right result.

    A call that produced an attempt must have produced one of the ``good`` ones; any other (plan, comparison) counts as
    good where the final answer was ``right``. Salvaged and incomplete replies never count.
    """
    predictor, _, outputs = step
    values = {name: outputs.get(name) for name in predictor.signature.output_fields}
    if outputs.get(SALVAGED) or any(value in (None, "", []) for value in values.values()):
        return False
    if "program" in values:
        return any(attempt.code == values["program"] for attempt in good)
    if "answer" in values:
        return any(_stated(attempt, values) for attempt in good if attempt.code is None)
    return right


def every_attempt(solution: Solution) -> list[Attempt]:
    """All attempts of a solution, those that were refined away included."""
    return [each for attempt in solution.attempts for each in (*attempt.earlier, attempt)]


def _stated(attempt: Attempt, values: dict[str, Any]) -> bool:
    """Whether the attempt came from a reply with these fields."""
    return any(value and attempt.reasoning.strip() == str(value).strip() for value in values.values()) or (
        attempt.answer is not None and attempt.answer in str(values["answer"])
    )
