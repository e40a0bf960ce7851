"""The one metric that DSPy's optimizers get: the whole pipeline's score, and for GEPA each predictor's feedback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dspy

from coda.data.examples import Example
from coda.data.grading import Grade, grade
from coda.optimize.demos import Step, every_attempt, worth_imitating
from coda.optimize.examine import examine
from coda.optimize.feedback import feedback
from coda.optimize.records import Record
from coda.program.concurrency import run_sync
from coda.program.presentation import statement
from coda.program.tools.sandbox import Sandbox
from coda.program.types import Solution


def as_dspy(example: Example) -> dspy.Example:
    """An example as DSPy's optimizers want it: the problem is its input; id, statement and answer are labels."""
    fields = {"id": example.id, "statement": statement(example.problem), "answer": example.answer}
    return dspy.Example(problem=example.problem, **fields).with_inputs("problem")


class StageMetric:
    """Scores a prediction of the pipeline; called as DSPy's optimizers call a metric.

    - ``metric(gold, pred)`` is the score, from 0 to 1.
    - ``metric(gold, pred, trace, pred_name, pred_trace)`` is a `dspy.Prediction` of that same score with the feedback
      for one predictor, as GEPA wants it.

    Args:
        examples: Those that may be asked for, by their ids.
        sandbox: Where programs are graded.
        token_cost: λ, what a thousand tokens of a problem take off its score.
        by_stage: Whether the feedback is a stage's own; else all predictors are told the final answer's grade alone.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        *,
        sandbox: Sandbox | None = None,
        token_cost: float = 0.0,
        by_stage: bool = True,
    ) -> None:
        self._examples = {example.id: example for example in examples}
        self._sandbox = sandbox
        self._token_cost = token_cost
        self._by_stage = by_stage
        self._grades: dict[tuple[str, str | None], Grade] = {}

    def __call__(
        self,
        gold: dspy.Example,
        pred: dspy.Prediction,
        trace: list[Step] | None = None,
        pred_name: str | None = None,
        pred_trace: list[Step] | None = None,
    ) -> Any:
        """Score, and tell where that is asked for; a float without ``pred_name``."""
        example = self.example(gold)
        solution = getattr(pred, "solution", None)
        score = 0.0 if solution is None else self.score(example, solution)
        if pred_name is not None:
            text = "The pipeline failed." if solution is None else self._tell(example, solution, pred_name, pred_trace)
            return dspy.Prediction(score=score, feedback=text)
        return score

    def example(self, gold: dspy.Example) -> Example:
        """The example, with its reference and its tests, that stands behind DSPy's own."""
        return self._examples[gold.id]

    def score(self, example: Example, solution: Solution) -> float:
        """The final answer's grade, less what its tokens cost; never below 0."""
        cost = self._token_cost * solution.usage.tokens / 1000
        return max(0.0, self.grade(example, solution.answer).score - cost)

    def grade(self, example: Example, answer: str | None) -> Grade:
        """The grade of an answer; equal answers are graded once."""
        key = (example.id, answer)
        if key not in self._grades:
            self._grades[key] = grade(example, answer, sandbox=self._sandbox)
        return self._grades[key]

    def record(self, example: Example, solution: Solution) -> Record:
        """The record of a solution, all its attempts graded."""
        return run_sync(examine(example, 0, solution, {}, self._sandbox))

    def _tell(self, example: Example, solution: Solution, pred_name: str, pred_trace: list[Step] | None) -> str:
        if not self._by_stage:
            return self.grade(example, solution.answer).feedback
        outputs = dict(pred_trace[-1][2].items()) if pred_trace else {}
        return feedback(
            self.record(example, solution), pred_name, outputs, lambda answer: self.grade(example, answer).feedback
        )


class Accepting:
    """The metric as bootstrapping wants it.

    - ``accepting(gold, pred)`` is the metric's score.
    - ``accepting(gold, pred, trace)`` says whether demos may be made of a trace: only where the final answer is fully
      right, whatever its tokens cost. It first removes from ``trace`` the calls that are not worth imitating
      (`worth_imitating`), since DSPy would make a demo of each.
    """

    def __init__(self, metric: StageMetric) -> None:
        self.metric = metric

    def __call__(self, gold: dspy.Example, pred: dspy.Prediction, trace: list[Step] | None = None) -> Any:
        """The score, or with ``trace`` a yes or no."""
        if trace is None:
            return self.metric(gold, pred)
        example = self.metric.example(gold)

        def right(answer: str | None) -> bool:
            return self.metric.grade(example, answer).correct

        good = [attempt for attempt in every_attempt(pred.solution) if right(attempt.answer)]
        final = right(pred.answer)
        trace[:] = [step for step in trace if worth_imitating(step, good, final)]
        return final
