"""Grades, and the feedback that optimizers read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from coda.data.examples import Example
from coda.data.grading import Grade, agrade, grade
from coda.data.grading import code as code_grading
from coda.errors import SandboxError
from coda.program.tools.sandbox import Sandbox
from coda.program.types import Execution, IOCase

Make = Callable[..., Example]
CELL = ("the nucleus", "the mitochondria")
ADD = "def add(a, b):\n    return a + b\n"


def test_a_right_number_is_told_so(example: Make) -> None:
    assert grade(example("0.5"), "1/2") == Grade(score=1.0, feedback="1/2 is right.")


def test_a_wrong_number_is_told_with_what_was_expected(example: Make) -> None:
    assert grade(example("1,042"), "$12.50") == Grade(score=0.0, feedback="Expected 1042, got 12.5.")


def test_no_answer_is_told_with_what_was_expected(example: Make) -> None:
    assert grade(example("42"), None) == Grade(score=0.0, feedback="There is no answer. Expected 42.")


@pytest.mark.parametrize("answer", ["B", "(b)", "the mitochondria", r"\text{B}"])
def test_a_choice_is_right_by_letter_or_text(example: Make, answer: str) -> None:
    assert grade(example("B", task="choice", choices=CELL), answer).feedback == "B (the mitochondria) is right."


def test_a_wrong_choice_is_told_with_both_options(example: Make) -> None:
    feedback = grade(example("the mitochondria", task="choice", choices=CELL), "A").feedback
    assert feedback == "Expected B (the mitochondria), got A (the nucleus)."


def test_a_text_is_compared_without_case_and_punctuation(example: Make) -> None:
    assert grade(example("The Nile", task="text"), "the nile.").correct
    assert grade(example("The Nile", task="text"), "the  Amazon").feedback == "Expected 'The Nile', got 'the Amazon'."


@pytest.mark.sandbox
def test_a_program_that_passes_the_hidden_tests_is_right(example: Make) -> None:
    task = example("", task="code", tests=("assert add(1, 1) == 2",), hidden_tests=("assert add(2, 3) == 5",))
    assert grade(task, ADD) == Grade(score=1.0, feedback="All 1 tests pass.")


@pytest.mark.sandbox
def test_without_hidden_tests_the_visible_ones_grade(example: Make) -> None:
    task = example("", task="code", tests=("assert add(1, 1) == 2", "assert add(2, 3) == 5"))
    assert not grade(task, ADD.replace("+", "*")).correct


@pytest.mark.sandbox
def test_the_first_failing_test_is_told(example: Make) -> None:
    task = example("", task="code", hidden_tests=("assert add(2, 2) == 4", "assert add(2, 3) == 5", "assert 0"))
    feedback = grade(task, ADD.replace("+", "*")).feedback
    assert feedback.splitlines()[:2] == [
        "1 of 3 tests passed before the first failure.",
        "Test 2 of 3 failed: add(2, 3) == 5",
    ]
    assert "expected 5, got 6" in feedback


@pytest.mark.sandbox
def test_a_preamble_stands_before_the_program(example: Make) -> None:
    task = example("", task="code", preamble="import math\n", hidden_tests=("assert root(9) == 3",))
    assert grade(task, "def root(x):\n    return math.isqrt(x)\n").correct


@pytest.mark.sandbox
def test_programs_are_tested_by_what_they_print(example: Make) -> None:
    task = example("", task="code", io=(IOCase("2 3\n", "5\n"), IOCase("1 1\n", "2.0\n")), float_tolerance=0.0)
    assert grade(task, "print(sum(map(int, input().split())))").feedback == "All 2 tests pass."
    wrong = grade(task, "print(5)")
    assert wrong.score == 0.0
    assert "Test 2 of 2 failed on the input:\n1 1\nexpected:\n2.0\ngot:\n5" in wrong.feedback


@pytest.mark.parametrize("answer", [None, "", "  \n"])
def test_no_program_is_wrong_and_runs_nothing(example: Make, answer: str | None) -> None:
    task = example("", task="code", hidden_tests=("assert True",))
    assert grade(task, answer) == Grade(score=0.0, feedback="There is no program.")


class NoSandbox(Sandbox):
    """A machine without one."""

    async def run_tests(self, *args: object, **kwargs: object) -> Execution:
        return Execution(outcome="no-sandbox")


class Slow(Sandbox):
    """One in which everything takes long."""

    async def run_io(self, *args: object, **kwargs: object) -> Execution:
        await asyncio.sleep(3600)
        raise AssertionError


async def test_without_a_sandbox_nothing_can_be_graded(example: Make) -> None:
    task = example("", task="code", hidden_tests=("assert True",))
    with pytest.raises(SandboxError, match="Programs cannot be graded here"):
        await agrade(task, "x = 1", sandbox=NoSandbox())


async def test_all_tests_together_have_a_limit(example: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_grading, "TOTAL_SECONDS", 0.05)
    task = example("", task="code", io=(IOCase("", ""),))
    graded = await agrade(task, "x = 1", sandbox=Slow())
    assert graded.feedback == "The tests together did not end within 0.05 seconds."
