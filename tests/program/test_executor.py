"""The executor: paths in parallel, programs that really run, corrections on what really happened."""

from __future__ import annotations

from typing import Any

import dspy
import pytest
from local_engine import Answer

from coda.program.adapters import adapter_for
from coda.program.concurrency import run_sync
from coda.program.settings import Limits, Settings
from coda.program.types import IOCase, Path, Problem, Step

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


@pytest.mark.usefixtures("sandboxed")
def test_the_same_program_in_another_layout_ends_the_corrections(pipeline: Any, plain: Settings) -> None:
    again = "# a new idea\nprint( x )"
    program = pipeline(only("code", plain, max_refinements=5), code="print(x)", repair=again)
    [attempt] = program.solve(PROBLEM).attempts
    assert pipeline.asked == ["code", "repair"]
    assert attempt.code == "print(x)"


@pytest.mark.usefixtures("sandboxed")
def test_corrections_go_on_until_one_works(pipeline: Any, plain: Settings) -> None:
    program = pipeline(
        only("code", plain, max_refinements=4), code="print(a)", repair=["print(b)", "print(c)", "print(6 * 7)"]
    )
    [attempt] = program.solve(PROBLEM).attempts
    assert (attempt.answer, attempt.refinements, len(attempt.earlier)) == ("42", 3, 3)
    assert pipeline.asked == ["code", "repair", "repair", "repair"]


@pytest.mark.usefixtures("sandboxed")
def test_corrections_end_with_their_number(pipeline: Any, plain: Settings) -> None:
    program = pipeline(only("code", plain, max_refinements=2), code="print(a)", repair=["print(b)", "print(c)"])
    [attempt] = program.solve(PROBLEM).attempts
    assert (attempt.answer, attempt.refinements) == (None, 2)


@pytest.mark.usefixtures("sandboxed")
def test_corrections_end_with_the_budget_and_keep_the_attempt(pipeline: Any, plain: Settings) -> None:
    settings = only("code", plain, max_refinements=5, per_problem=Limits(max_calls=2))
    solution = pipeline(settings, code="print(a)", repair="print(b)").solve(PROBLEM)
    assert pipeline.engine.requests == 2
    assert [attempt.code for attempt in solution.attempts] == ["print(b)"]
    assert solution.fault == "budget"


@pytest.mark.usefixtures("sandboxed")
def test_output_that_is_no_answer_is_told_so(pipeline: Any, plain: Settings) -> None:
    choice = Problem(text="Which is prime?", task="choice", choices=("51", "53"))
    program = pipeline(only("code", plain), code="print('neither')", repair="print('B')")
    [attempt] = program.solve(choice).attempts
    assert attempt.answer == "B"
    assert "letter of one of the options" in pipeline.engine.bodies[-1]["messages"][-1]["content"]


@pytest.mark.usefixtures("sandboxed")
def test_a_program_that_reads_and_prints_is_corrected_on_the_case_that_failed(pipeline: Any, plain: Settings) -> None:
    problem = Problem(text="Add two numbers.", task="code", cases=(IOCase("2 3", "5"),))
    wrong, right = "a, b = map(int, input().split())\nprint(a - b)", "print(sum(map(int, input().split())))"
    program = pipeline(only("code", plain), function=wrong, repair=right)
    solution = program.solve(problem)
    assert solution.answer == right
    shown = pipeline.engine.bodies[-1]["messages"][-1]["content"]
    assert "2 3" in shown
    assert "-1" in shown


@pytest.mark.usefixtures("sandboxed")
def test_examples_in_the_statement_are_run(pipeline: Any, plain: Settings) -> None:
    problem = Problem(text="Write add(a, b).\n\n>>> add(2, 3)\n5", task="code", entry_point="add")
    wrong, right = "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b"
    solution = pipeline(only("code", plain), function=wrong, repair=right).solve(problem)
    assert solution.answer == right
    assert solution.attempts[0].execution.tests_passed == 1


PARTS = "1. What is 6 * 6?\n2. What is 36 + 6?"


def test_a_problem_is_solved_part_by_part(pipeline: Any, plain: Settings) -> None:
    program = pipeline(
        only("decompose", plain), decompose=PARTS, part=["Answer: 36", "Answer: 42"], combine="So.\nAnswer: 42"
    )
    [attempt] = program.solve(PROBLEM).attempts
    assert pipeline.asked == ["decompose", "part", "part", "combine"]
    assert attempt.answer == "42"
    assert [(part.question, part.answer) for part in attempt.parts] == [
        ("What is 6 * 6?", "36"),
        ("What is 36 + 6?", "42"),
    ]
    second = pipeline.engine.bodies[2]["messages"][-1]["content"]
    assert "What is 6 * 6?\n   36" in second


def test_planned_steps_are_the_parts(pipeline: Any, plain: Settings) -> None:
    path = Path(mode="decompose", steps=(Step(action="Square six."), Step(action="Add six.")))
    program = pipeline(plain, part=["Answer: 36", "Answer: 42"], combine="Answer: 42")
    with dspy.context(lm=program.engine.lm, adapter=adapter_for("plain")):
        attempt = run_sync(program.executor.follow(PROBLEM, path, 0))
    assert pipeline.asked == ["part", "part", "combine"]
    assert attempt.answer == "42"


def test_what_cannot_be_split_is_reasoned_out_whole(pipeline: Any, plain: Settings) -> None:
    program = pipeline(only("decompose", plain), decompose="It is one thing.", reason="Answer: 42")
    assert program.solve(PROBLEM).answer == "42"
    assert pipeline.asked == ["decompose", "reason"]


def test_a_budget_that_ends_among_the_parts_keeps_them(pipeline: Any, plain: Settings) -> None:
    settings = only("decompose", plain, per_problem=Limits(max_calls=2))
    solution = pipeline(settings, decompose=PARTS, part="Answer: 36", combine="Answer: 42").solve(PROBLEM)
    assert [part.answer for part in solution.attempts[0].parts] == ["36"]
    assert (solution.attempts[0].finish, solution.fault) == ("budget", "budget")


def test_paths_come_in_waves_until_one_answer_leads_by_the_quorum(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 6, "max_paths": 6, "quorum": 2, "wave": 1})
    replies = [f"Answer: {n}" for n in (1, 2, 1, 1, 5, 6)]
    solution = pipeline(settings, reason=replies).solve(PROBLEM)
    assert pipeline.engine.requests == 4
    assert solution.answer == "1"
    assert solution.early_exit


def test_quorum_zero_follows_every_path(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 4, "quorum": 0})
    solution = pipeline(settings, reason="Answer: 42").solve(PROBLEM)
    assert len(solution.attempts) == 4
    assert not solution.early_exit
