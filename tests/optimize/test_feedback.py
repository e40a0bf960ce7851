"""What each stage is told, and measured at, on stories made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coda.data.examples import Example
from coda.data.grading import grade
from coda.optimize.feedback import attempt_of, feedback
from coda.optimize.measures import diversity, measures
from coda.optimize.records import GradedAttempt, Record
from coda.program.types import Execution, Path, Plan, Problem, Verdict

Attempted = Callable[..., GradedAttempt]
Recorded = Callable[..., Record]

EXAMPLE = Example(id="p1", problem=Problem(text="What is 2 + 2?"), answer="4")


def told(answer: str | None) -> str:
    return grade(EXAMPLE, answer).feedback


def say(record: Record, predictor: str, **outputs: Any) -> str:
    return feedback(record, predictor, outputs, told)


def test_the_planner_hears_which_path_worked_and_why_the_other_failed(attempt: Attempted, record: Recorded) -> None:
    failed = attempt(None, mode="code", execution=Execution(outcome="error", feedback="line 2: NameError: n"))
    plan = Plan(paths=(Path(mode="reason", approach="count up"), Path(mode="code")), source="engine")
    text = say(record(attempt("4"), failed, plan=plan), "planner.propose")
    assert "Path 1 (reason) led to the right answer." in text
    assert "Path 2 (code) failed: When run: line 2: NameError: n There is no answer. Expected 4." in text


def test_the_planner_hears_that_no_path_led_to_the_answer_and_which_are_alike(
    attempt: Attempted, record: Recorded
) -> None:
    same = tuple(Path(mode="reason", approach=f"add the two numbers {how}") for how in ("up", "together"))
    text = say(record(attempt("5"), attempt("5"), plan=Plan(paths=same, source="engine")), "planner.propose")
    assert "No path led to the right answer" in text
    assert "Paths 1 and 2 are the same idea." in text
    assert "The pipeline's final answer is wrong. Expected 4, got 5." in text


def test_the_planner_hears_that_its_plan_could_not_be_read(attempt: Attempted, record: Recorded) -> None:
    assert "The plan could not be used" in say(record(attempt("4")), "planner.propose")


def test_the_executor_hears_the_real_error_of_its_own_program(attempt: Attempted, record: Recorded) -> None:
    broken = attempt(None, mode="code", code="print(x)", execution=Execution(outcome="error", feedback="NameError: x"))
    story = record(attempt("4", mode="code", code="print(4)"), broken)
    assert "This attempt is wrong. When run: NameError: x" in say(story, "executor.code", program="print(x)")
    assert "This attempt is right. 4 is right." in say(story, "executor.code", program="print(4)")


def test_the_executor_hears_expected_against_got(attempt: Attempted, record: Recorded) -> None:
    story = record(attempt("4", reasoning="two and two"), attempt("5", reasoning="I guess"))
    text = say(story, "executor.reason", reasoning="I guess", answer="5")
    assert text.startswith("This attempt is wrong. Expected 4, got 5.")


def test_the_executor_hears_what_became_of_a_correction(attempt: Attempted, record: Recorded) -> None:
    first = attempt("5", mode="code", code="print(5)")
    mended = attempt("4", mode="code", code="print(4)", earlier=(first,), refinements=1)
    assert "The correction that followed was right." in say(record(mended), "executor.code", program="print(5)")
    spoilt = attempt("5", mode="code", code="print(5)", earlier=(attempt("4", mode="code", code="print(4)"),))
    text = say(record(spoilt), "executor.repair", program="print(5)")
    assert "The attempt that it corrected was right." in text


def test_the_reflector_hears_that_it_dropped_the_right_answer(attempt: Attempted, record: Recorded) -> None:
    story = record(attempt("5"), attempt("4"), attempt("6", origin="reflection"), chosen=2)
    text = say(story, "reflector.reconcile", answer="6")
    assert text.startswith("The right answer was in attempt 2 and was dropped. Expected 4, got 6.")


def test_the_reflector_hears_that_none_was_right(attempt: Attempted, record: Recorded) -> None:
    story = record(attempt("5"), attempt("6"), attempt("7", origin="reflection"), chosen=2)
    assert "None of the attempts was right. Expected 4, got 7." in say(story, "reflector.reconcile")
    found = record(attempt("5"), attempt("6"), attempt("4", origin="reflection"), chosen=2)
    assert "and the consolidated answer is right." in say(found, "reflector.reconcile")


def test_the_verifier_hears_that_it_chose_a_and_b_was_right(attempt: Attempted, record: Recorded) -> None:
    verdict = Verdict(answer="5", confidence=0.6, chosen=0, reason="2 of 3 votes")
    text = say(record(attempt("5"), attempt("5"), attempt("4"), verdict=verdict), "verifier.compare", better="first")
    assert "Chose 5; 4 was right. Votes: 5 had 2, 4 had 1. The verdict's reason: 2 of 3 votes" in text


def test_a_predictor_that_a_stage_gained_since_is_told_the_stage_s_words(attempt: Attempted, record: Recorded) -> None:
    story = record(attempt("5"), attempt("4"), chosen=0)
    assert say(story, "verifier.judge") == say(story, "verifier.compare")


def test_a_call_that_became_no_attempt_is_none(attempt: Attempted, record: Recorded) -> None:
    assert attempt_of(record(attempt("4", code="print(4)")), {"program": "print(5)"}) is None


def test_measures_count_what_each_stage_did(attempt: Attempted, record: Recorded) -> None:
    fixed = record(attempt("5"), attempt("6"), attempt("4", origin="reflection"), chosen=2)
    broken = record(attempt("4"), attempt("4"), attempt("6", origin="reflection"), chosen=2)
    mended = record(attempt("4", earlier=(attempt("5"),)), chosen=0)
    lost = record(attempt("5"), chosen=0)
    found = measures([fixed, broken, mended, lost])
    assert (found.coverage.hits, found.coverage.of) == (2, 4)
    assert (found.success.hits, found.success.of) == (3, 6)
    assert (found.mended, found.spoilt) == (1, 0)
    assert (found.fixed, found.broken, found.disagreements) == (1, 1, 2)
    assert (found.selection.hits, found.selection.of) == (2, 3)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Path(mode="reason", approach="count"), Path(mode="code", approach="count"), 1.0),
        (Path(mode="code", approach="count up"), Path(mode="code", approach="Count up."), 0.0),
        (Path(mode="code", approach="count up"), Path(mode="code", approach="count down"), 2 / 3),
    ],
)
def test_diversity_is_the_share_of_words_not_in_common(first: Path, second: Path, expected: float) -> None:
    assert diversity((first, second)) == pytest.approx(expected)
