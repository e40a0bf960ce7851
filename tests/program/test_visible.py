"""Examples in a statement become tests; what is not plainly an example does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coda.program.concurrency import run_sync
from coda.program.tools.sandbox import shared_sandbox
from coda.program.types import IOCase, Problem
from coda.program.visible import visible_tests

HUMANEVAL = Path(__file__).parents[2].parent / "shared" / "data" / "humaneval_80.jsonl"


def read(text: str, function: str | None = None) -> list[str]:
    return list(visible_tests(Problem(text=text, task="code", entry_point=function)).asserts)


def test_given_tests_are_taken_as_they_are() -> None:
    problem = Problem(text="Write f.\n>>> f(1)\n2", task="code", tests=("assert f(3) == 4",))
    assert visible_tests(problem).asserts == ("assert f(3) == 4",)


def test_other_problems_have_none() -> None:
    assert not visible_tests(Problem(text=">>> 1 + 1\n2"))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (">>> f(1)\n2", "assert f(1) == 2"),
        ("f([1, 2]) == 3", "assert f([1, 2]) == 3"),
        ('- `f("a)b") => "x"`', 'assert f("a)b") == "x"'),
        ("f(1, k=2) ➞ [3]", "assert f(1, k=2) == [3]"),
        ("For example, f(-1) returns None.", "assert f(-1) == None"),
        ("assert f(2) == 3", "assert f(2) == 3"),
    ],
)
def test_examples_are_read_in_many_spellings(line: str, wanted: str) -> None:
    assert read(f"Write f.\n\n{line}\n", "f") == [wanted]


@pytest.mark.parametrize(
    "line",
    ["f(x) == y", "f(g(1)) == 2", "g(1) == 2", "f(1) is odd", "f(1) == 2 for all inputs", ">>> f(1)", "assert f("],
)
def test_what_is_not_plainly_an_example_is_none(line: str) -> None:
    assert read(f"Write f.\n\n{line}\n", "f") == []


def test_samples_of_input_and_output_are_cases() -> None:
    text = "Add.\n\n### Sample Input 1\n```\n2 3\n4\n```\n\n### Sample Output 1\n\n9\n\nExplanation\n\n2+3+4.\n"
    assert visible_tests(Problem(text=text, task="code")).cases == (IOCase("2 3\n4\n", "9\n"),)


def test_several_samples_are_several_cases() -> None:
    text = "Double it.\n\nInput:\n1\n\nOutput:\n2\n\nInput:\n3\n\nOutput:\n6\n\nNote: easy.\n"
    assert visible_tests(Problem(text=text, task="code")).cases == (IOCase("1\n", "2\n"), IOCase("3\n", "6\n"))


def test_a_description_of_the_input_is_no_case() -> None:
    text = "Input\n\nThe first line has n.\n\nConstraints\n\nn < 10\n"
    assert not visible_tests(Problem(text=text, task="code"))


@pytest.mark.slow
@pytest.mark.skipif(not HUMANEVAL.exists(), reason="needs the shared benchmark data")
def test_reference_programs_pass_what_is_read_from_their_statements() -> None:
    sandbox = shared_sandbox()
    if not sandbox.available:
        pytest.skip(f"no sandbox here: {sandbox.why}")
    found, failed = 0, []
    for line in HUMANEVAL.read_text("utf-8").splitlines():
        row = json.loads(line)
        problem = Problem(text=row["prompt"], task="code", entry_point=row["entry_point"])
        asserts = visible_tests(problem).asserts
        found += bool(asserts)
        if asserts:
            run = run_sync(sandbox.run_tests(row["prompt"] + row["canonical_solution"], asserts))
            failed += [row["task_id"]] if run.outcome != "ok" else []
    assert failed == ["HumanEval/47"], "the one whose docstring is wrong"
    assert found == 70
