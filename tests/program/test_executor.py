"""The executor: paths in parallel, programs that really run, corrections on what really happened."""

from __future__ import annotations

from typing import Any

import pytest
from local_engine import Answer

from coda.program.settings import Limits, Settings
from coda.program.types import Problem

PROBLEM = Problem(text="What is 6 * 7?")


def only(mode: str, plain: Settings, **changes: Any) -> Settings:
    return plain.model_copy(update={"paths": (mode,), "quorum": 1, **changes})


def test_reasoning_gives_the_stated_answer(pipeline: Any, plain: Settings) -> None:
    [attempt] = pipeline(only("reason", plain), reason="6 times 7.\nAnswer: 42").solve(PROBLEM).attempts
    assert (attempt.answer, attempt.reasoning, attempt.finish) == ("42", "6 times 7.", "ok")


@pytest.mark.usefixtures("sandboxed")
def test_a_program_s_output_is_the_answer(pipeline: Any, plain: Settings) -> None:
    [attempt] = pipeline(only("code", plain), code="print(6 * 7)").solve(PROBLEM).attempts
    assert (attempt.answer, attempt.code, attempt.refinements) == ("42", "print(6 * 7)", 0)
    assert attempt.execution.outcome == "ok"


@pytest.mark.usefixtures("sandboxed")
def test_a_failing_program_is_corrected_on_the_real_error(pipeline: Any, plain: Settings) -> None:
    program = pipeline(only("code", plain), code="print(6 * seven)", repair="print(6 * 7)")
    [attempt] = program.solve(PROBLEM).attempts
    assert (attempt.answer, attempt.refinements) == ("42", 1)
    assert [earlier.code for earlier in attempt.earlier] == ["print(6 * seven)"]
    shown = pipeline.engine.bodies[-1]["messages"][-1]["content"]
    assert "What is 6 * 7?" in shown
    assert "print(6 * seven)" in shown
    assert "NameError" in shown


@pytest.mark.usefixtures("sandboxed")
def test_a_program_that_prints_nothing_is_told_so(pipeline: Any, plain: Settings) -> None:
    program = pipeline(only("code", plain), code="x = 42", repair="print(42)")
    [attempt] = program.solve(PROBLEM).attempts
    assert attempt.answer == "42"
    assert "printed nothing" in pipeline.engine.bodies[-1]["messages"][-1]["content"]


@pytest.mark.usefixtures("sandboxed")
def test_the_same_wrong_program_again_ends_the_corrections(pipeline: Any, plain: Settings) -> None:
    program = pipeline(only("code", plain, max_refinements=5), code="print(x)", repair="print(x)")
    [attempt] = program.solve(PROBLEM).attempts
    assert pipeline.asked == ["code", "repair"]
    assert attempt.execution.outcome == "error"


@pytest.mark.usefixtures("sandboxed")
def test_a_function_is_corrected_on_the_test_that_failed(pipeline: Any, plain: Settings) -> None:
    problem = Problem(text="Write add(a, b).", task="code", tests=("assert add(2, 3) == 5",), entry_point="add")
    wrong, right = "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b"
    program = pipeline(only("code", plain), function=wrong, repair=right)
    solution = program.solve(problem)
    assert solution.answer == right
    assert "add(2, 3) == 5" in pipeline.engine.bodies[-1]["messages"][-1]["content"]


def test_a_truncated_reply_is_an_attempt_marked_so(pipeline: Any, plain: Settings) -> None:
    reply = Answer("6 times 7 is 42. But let me", finish="length")
    solution = pipeline(only("reason", plain), reason=reply).solve(PROBLEM)
    assert solution.attempts[0].finish == "truncated"


def test_a_code_reply_without_a_program_still_states_its_answer(pipeline: Any, plain: Settings) -> None:
    [attempt] = pipeline(only("code", plain), code="No need for code. The answer is 42.").solve(PROBLEM).attempts
    assert (attempt.answer, attempt.finish) == ("42", "unparsable")


def test_agreement_stops_the_search(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 4, "quorum": 2})
    solution = pipeline(settings, reason="Answer: 42").solve(PROBLEM)
    assert solution.early_exit
    assert pipeline.engine.requests == 2


def test_disagreement_buys_the_other_paths(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 4, "quorum": 2})
    replies = ["Answer: 41", "Answer: 42", "Answer: 42", "Answer: 40"]
    solution = pipeline(settings, reason=replies).solve(PROBLEM)
    assert solution.answer == "42"


def test_paths_are_sampled_apart_and_without_the_sandbox_s_help(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 3, "quorum": 3})
    solution = pipeline(settings, reason=["Answer: 1", "Answer: 2", "Answer: 3"]).solve(PROBLEM)
    assert sorted(str(attempt.answer) for attempt in solution.attempts) == ["1", "2", "3"]


def test_the_budget_ends_the_search_and_keeps_the_best_answer(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 4, "quorum": 4, "per_problem": Limits(max_calls=3)})
    solution = pipeline(settings, reason="Answer: 42").solve(PROBLEM)
    assert solution.answer == "42"
    assert solution.fault == "budget"
    assert pipeline.engine.requests == solution.usage.calls == 3
