"""Demos: where they come from, and what is worth imitating."""

from __future__ import annotations

import dspy

from coda.data.benchmarks import Example
from coda.optimize.demos import Step, labelled, with_demos, worth_imitating
from coda.optimize.metric import Accepting, StageMetric, as_dspy
from coda.program.conductor import Coda
from coda.program.presentation import exhibit
from coda.program.settings import Settings
from coda.program.types import Attempt, Part, Path, Plan, Problem, Solution, Verdict

EXAMPLE = Example(id="e", problem=Problem(text="What is 6 * 7?"), answer="42", split="train")


def example(i: int, program: str | None) -> Example:
    return Example(id=f"e{i}", problem=Problem(text=f"What is {i} + 1?"), answer=str(i + 1), program=program)


def solution(*attempts: Attempt, answer: str | None = "42") -> dspy.Prediction:
    found = Solution(
        answer=answer, verdict=Verdict(answer=answer, confidence=1.0), plan=Plan(paths=()), attempts=attempts
    )
    return dspy.Prediction(answer=answer, solution=found)


def accepting(prediction: dspy.Prediction, trace: list[Step]) -> bool:
    return bool(Accepting(StageMetric([EXAMPLE]))(as_dspy(EXAMPLE), prediction, trace))


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
    assert accepting(solution(wrong, right), trace)
    assert [step[2].program for step in trace] == ["print(42)"]


def test_a_program_that_was_corrected_is_no_demo_of_writing_but_its_correction_is_of_repairing() -> None:
    program = Coda(Settings())
    failed = by_code("print(x)", None)
    repaired = by_code("print(42)", "42", refinements=1, earlier=(failed,))
    trace = [
        (program.executor.code, {}, dspy.Prediction(program="print(x)")),
        (program.executor.repair, {}, dspy.Prediction(program="print(42)")),
    ]
    accepting(solution(repaired), trace)
    assert [step[0] is program.executor.repair for step in trace] == [True]


def test_salvaged_and_incomplete_replies_are_never_demos() -> None:
    program = Coda(Settings())
    right = Attempt(path=Path(mode="reason"), answer="42", reasoning="six sevens")
    trace = [
        (program.executor.reason, {}, dspy.Prediction(reasoning="six sevens", answer="42", salvaged=True)),
        (program.executor.reason, {}, dspy.Prediction(reasoning="", answer="42")),
        (program.executor.reason, {}, dspy.Prediction(reasoning="six sevens", answer="42")),
    ]
    accepting(solution(right), trace)
    assert len(trace) == 1
    assert "salvaged" not in trace[0][2]


def test_a_wrong_final_answer_is_not_accepted() -> None:
    assert not accepting(solution(answer="41"), [])


def test_demos_go_into_a_copy() -> None:
    program = Coda(Settings())
    copy = with_demos(program, labelled([example(1, "print(1 + 1)")], 1, seed=0))
    assert len(copy.executor.code.demos) == 1
    assert program.executor.code.demos == []


RIGHT = Attempt(path=Path(mode="reason"), answer="42", reasoning="six sevens")
WRONG = Attempt(path=Path(mode="reason"), answer="41", reasoning="nearly")


def test_a_judge_is_imitated_where_it_told_right_from_wrong() -> None:
    judge = Coda(Settings()).verifier.judge

    def worth(shown: Attempt, verdict: str) -> bool:
        step = (judge, {"attempt": exhibit(shown)}, dspy.Prediction(reasoning="checked", verdict=verdict))
        return worth_imitating(step, [RIGHT], right=True)

    assert [worth(RIGHT, "right"), worth(WRONG, "wrong")] == [True, True]
    assert [worth(RIGHT, "wrong"), worth(WRONG, "right")] == [False, False]


def test_a_comparison_is_imitated_where_it_chose_the_one_that_was_right() -> None:
    compare = Coda(Settings()).verifier.compare

    def worth(first: Attempt, second: Attempt, better: str) -> bool:
        inputs = {"first": exhibit(first), "second": exhibit(second)}
        return worth_imitating((compare, inputs, dspy.Prediction(reasoning="r", better=better)), [RIGHT], right=True)

    assert worth(RIGHT, WRONG, "first")
    assert worth(WRONG, RIGHT, "second")
    assert not worth(RIGHT, WRONG, "second")
    assert not worth(WRONG, WRONG, "first")
    assert not worth(RIGHT, RIGHT, "first")


def test_the_parts_of_a_right_attempt_are_imitated() -> None:
    executor = Coda(Settings()).executor
    solved = Attempt(answer="42", reasoning="both", parts=(Part(question="6 * 6?", answer="36"),))
    splitting = (executor.decompose, {}, dspy.Prediction(parts=["6 * 6?", "and 6 more?"]))
    part = (executor.part, {}, dspy.Prediction(reasoning="squared", answer="36"))
    other = (executor.part, {}, dspy.Prediction(reasoning="guessed", answer="35"))
    assert [worth_imitating(step, [solved], right=True) for step in (splitting, part, other)] == [True, True, False]
    assert not worth_imitating(splitting, [RIGHT], right=True)
