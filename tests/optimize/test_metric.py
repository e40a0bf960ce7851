"""The metric as DSPy's optimizers call it."""

from __future__ import annotations

import dspy
import pytest

from coda.data.examples import Example
from coda.optimize.metric import Accepting, StageMetric, as_dspy
from coda.optimize.records import NO_PLAN
from coda.program.types import Attempt, Problem, Solution, Usage, Verdict
from coda.signatures.execution import Reason

EXAMPLE = Example(id="p1", problem=Problem(text="What is 2 + 2?"), answer="4")
GOLD = as_dspy(EXAMPLE)


def prediction(*answers: str, chosen: int = 0, tokens: int = 0) -> dspy.Prediction:
    attempts = tuple(Attempt(answer=answer, reasoning=f"It is {answer}") for answer in answers)
    verdict = Verdict(answer=answers[chosen], confidence=0.5, chosen=chosen)
    solution = Solution(
        answer=answers[chosen],
        verdict=verdict,
        plan=NO_PLAN,
        attempts=attempts,
        usage=Usage(completion_tokens=tokens),
    )
    return dspy.Prediction(answer=solution.answer, solution=solution)


def step(answer: str) -> tuple[dspy.Predict, dict[str, str], dspy.Prediction]:
    outputs = dspy.Prediction(reasoning=f"It is {answer}", answer=answer)
    return dspy.Predict(Reason), {"problem": "What is 2 + 2?"}, outputs


def test_without_a_predictor_it_is_the_whole_pipeline_s_score() -> None:
    metric = StageMetric([EXAMPLE])
    assert metric(GOLD, prediction("4")) == 1.0
    assert metric(GOLD, prediction("5", "4")) == 0.0


def test_with_a_predictor_the_score_is_the_same_and_the_feedback_its_own() -> None:
    told = StageMetric([EXAMPLE])(GOLD, prediction("5", "4"), [], "executor.reason", [step("4")])
    assert told.score == 0.0
    assert told.feedback.startswith("This attempt is right. 4 is right.")


def test_without_stage_feedback_a_predictor_hears_the_final_grade_alone() -> None:
    metric = StageMetric([EXAMPLE], by_stage=False)
    assert metric(GOLD, prediction("5", "4"), [], "executor.reason", [step("4")]).feedback == "Expected 4, got 5."


@pytest.mark.parametrize(("tokens", "score"), [(0, 1.0), (500, 0.95), (50_000, 0.0)])
def test_tokens_cost_what_they_are_said_to(tokens: int, score: float) -> None:
    assert StageMetric([EXAMPLE], token_cost=0.1)(GOLD, prediction("4", tokens=tokens)) == pytest.approx(score)


def test_demos_come_from_right_answers_and_their_right_steps() -> None:
    accepting = Accepting(StageMetric([EXAMPLE], token_cost=0.1))
    trace = [step("5"), step("4")]
    assert accepting(GOLD, prediction("4", "5", tokens=900), trace) is True
    assert [each[2].answer for each in trace] == ["4"]
    assert accepting(GOLD, prediction("5", "4"), [step("4")]) is False


def test_a_pipeline_that_failed_scores_nothing_and_says_so() -> None:
    told = StageMetric([EXAMPLE])(GOLD, dspy.Prediction(), None, "planner.propose", None)
    assert (told.score, told.feedback) == (0.0, "The pipeline failed.")
