"""The reflector: sees all attempts with their evidence; its answer joins them."""

from __future__ import annotations

from typing import Any

import pytest

from coda.program.settings import Settings
from coda.program.types import Problem

PROBLEM = Problem(text="What is 6 * 7?")


def test_disagreement_is_reconciled_and_the_new_attempt_joins_the_vote(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason"), "reflect": True})
    program = pipeline(settings, reason=["Answer: 41", "Answer: 42"], reconcile="The first slipped.\nAnswer: 42")
    solution = program.solve(PROBLEM)
    assert [attempt.answer for attempt in solution.attempts if attempt.origin == "reflection"] == ["42"]
    assert solution.answer == "42"
    assert not solution.early_exit
    shown = pipeline.engine.bodies[-1]["messages"][-1]["content"]
    assert "Answer: 41" in shown
    assert "Answer: 42" in shown


def test_agreement_needs_no_reflection(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason"), "reflect": True})
    assert pipeline(settings, reason="Answer: 42").solve(PROBLEM).early_exit
    assert pipeline.asked == ["reason", "reason"]


def test_a_reflector_that_fails_loses_nothing(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 3, "reflect": True, "quorum": 3})
    program = pipeline(settings, reason=["Answer: 41", "Answer: 42", "Answer: 42"], reconcile="")
    assert program.solve(PROBLEM).answer == "42"


@pytest.mark.usefixtures("sandboxed")
def test_programs_are_reconciled_into_a_program_that_is_tested(pipeline: Any, plain: Settings) -> None:
    problem = Problem(text="Write add(a, b).", task="code", tests=("assert add(2, 3) == 5",))
    settings = plain.model_copy(update={"paths": ("code", "code"), "reflect": True, "max_refinements": 0})
    wrong = ["def add(a, b):\n    return a - b", "def add(a, b):\n    return a * b"]
    right = "def add(a, b):\n    return a + b"
    solution = pipeline(settings, function=wrong, reconcile_programs=right).solve(problem)
    assert solution.answer == right
    assert solution.verdict.reason == "passes 1 of 1 visible tests"
