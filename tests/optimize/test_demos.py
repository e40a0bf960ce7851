"""Demos: where they come from, and what is worth imitating."""

from __future__ import annotations

import dspy

from coda.data.benchmarks import Example
from coda.optimize.demos import Accept, labelled, with_demos
from coda.program.conductor import Coda
from coda.program.settings import Settings
from coda.program.types import Attempt, Path, Plan, Problem, Solution, Verdict

EXAMPLE = Example(id="e", problem=Problem(text="What is 6 * 7?"), answer="42", split="train")


def example(i: int, program: str | None) -> Example:
    return Example(id=f"e{i}", problem=Problem(text=f"What is {i} + 1?"), answer=str(i + 1), program=program)


def solution(*attempts: Attempt, answer: str | None = "42") -> dspy.Prediction:
    found = Solution(
        answer=answer, verdict=Verdict(answer=answer, confidence=1.0), plan=Plan(paths=()), attempts=attempts
    )
    return dspy.Prediction(answer=answer, solution=found)


def by_code(code: str, answer: str | None, **more: object) -> Attempt:
    return Attempt(path=Path(mode="code"), code=code, answer=answer, **more)  # type: ignore[arg-type]


def test_labelled_demos_are_reference_programs_with_complete_inputs() -> None:
    demos = labelled([example(1, "print(1 + 1)"), example(2, None)], 4, seed=0)
    assert {name: [demo.toDict() for demo in each] for name, each in demos.items()} == {
        "executor.code": [{"problem": "What is 1 + 1?", "approach": "", "program": "print(1 + 1)"}]
    }


def test_the_seed_decides_which_examples_become_demos() -> None:
    rows = [example(i, f"print({i} + 1)") for i in range(20)]
    chosen = [[demo.program for demo in labelled(rows, 4, seed)["executor.code"]] for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_only_the_calls_that_led_to_a_right_attempt_stay_in_a_trace() -> None:
    program = Coda(Settings())
    right, wrong = by_code("print(42)", "42"), by_code("print(41)", "41")
    trace = [
        (program.executor.code, {}, dspy.Prediction(program="print(41)")),
        (program.executor.code, {}, dspy.Prediction(program="print(42)")),
    ]
    assert Accept()(dspy.Example(example=EXAMPLE), solution(wrong, right), trace)
    assert [step[2].program for step in trace] == ["print(42)"]


def test_a_program_that_was_corrected_is_no_demo_of_writing_but_its_correction_is_of_repairing() -> None:
    program = Coda(Settings())
    failed = by_code("print(x)", None)
    repaired = by_code("print(42)", "42", refinements=1, earlier=(failed,))
    trace = [
        (program.executor.code, {}, dspy.Prediction(program="print(x)")),
        (program.executor.repair, {}, dspy.Prediction(program="print(42)")),
    ]
    Accept()(dspy.Example(example=EXAMPLE), solution(repaired), trace)
    assert [step[0] is program.executor.repair for step in trace] == [True]


def test_salvaged_and_incomplete_replies_are_never_demos() -> None:
    program = Coda(Settings())
    right = Attempt(path=Path(mode="reason"), answer="42", reasoning="six sevens")
    trace = [
        (program.executor.reason, {}, dspy.Prediction(reasoning="six sevens", answer="42", salvaged=True)),
        (program.executor.reason, {}, dspy.Prediction(reasoning="", answer="42")),
        (program.executor.reason, {}, dspy.Prediction(reasoning="six sevens", answer="42")),
    ]
    Accept()(dspy.Example(example=EXAMPLE), solution(right), trace)
    assert len(trace) == 1
    assert "salvaged" not in trace[0][2]


def test_a_wrong_final_answer_is_not_accepted() -> None:
    assert not Accept()(dspy.Example(example=EXAMPLE), solution(answer="41"), [])


def test_demos_go_into_a_copy() -> None:
    program = Coda(Settings())
    copy = with_demos(program, labelled([example(1, "print(1 + 1)")], 1, seed=0))
    assert len(copy.executor.code.demos) == 1
    assert program.executor.code.demos == []
