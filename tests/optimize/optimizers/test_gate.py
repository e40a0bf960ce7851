"""The hard stop, the record of what was tried, and the student."""

from __future__ import annotations

import dspy
import dspy.evaluate.evaluate
import pytest

from coda.errors import BudgetExceeded, EngineError
from coda.optimize.optimizers.gate import FAILURES, Gate, Halted
from coda.optimize.optimizers.quiet import PatientExecutor, patiently
from coda.optimize.optimizers.student import Prompts, Student, complete, prompts_of, with_prompts
from coda.optimize.optimizers.trials import Trials
from coda.program.adapters import SALVAGED
from coda.program.conductor import Coda
from coda.program.engine.budget import Budget
from coda.program.settings import Limits
from coda.signatures.execution import Reason


def down() -> EngineError:
    return EngineError("nothing answers", kind="connection")


def test_a_halt_is_nothing_that_an_optimizer_catches() -> None:
    assert not issubclass(Halted, Exception)


def test_the_gate_lets_as_many_rollouts_pass_as_it_may() -> None:
    gate = Gate((), 2)
    gate.begin_rollout()
    gate.begin_rollout()
    with pytest.raises(Halted) as caught:
        gate.begin_rollout()
    assert caught.value.error is None
    with pytest.raises(Halted):
        gate.check()


def test_a_limit_on_one_problem_is_no_reason_to_end() -> None:
    Gate((Budget(),), 9).refused(BudgetExceeded("this problem"), Budget())


def test_a_budget_of_the_search_is() -> None:
    search = Budget(Limits(max_calls=1))
    search.reserve(1)
    with pytest.raises(BudgetExceeded) as caught:
        search.reserve(1)
    with pytest.raises(Halted, match="1 calls"):
        Gate((search,), 9).refused(caught.value, Budget())


def test_an_engine_is_down_after_so_many_failures_in_a_row() -> None:
    gate = Gate((), 9)
    for _ in range(FAILURES - 1):
        gate.failed(down())
    gate.answered()
    for _ in range(FAILURES - 1):
        gate.failed(down())
    with pytest.raises(Halted, match="nothing answers"):
        gate.failed(down())


def test_a_wrong_key_needs_no_second_failure_and_a_long_prompt_is_none() -> None:
    gate = Gate((), 9)
    for _ in range(2 * FAILURES):
        gate.failed(EngineError("too long", kind="context"))
    with pytest.raises(Halted):
        gate.failed(EngineError("wrong key", kind="auth"))


def test_slow_problems_are_not_asked_twice() -> None:
    with patiently():
        assert dspy.evaluate.evaluate.ParallelExecutor is PatientExecutor
        assert dspy.predict.parallel.ParallelExecutor(num_threads=2, timeout=120).timeout == 0
    assert dspy.evaluate.evaluate.ParallelExecutor is not PatientExecutor


def prompts(instruction: str) -> Prompts:
    return Prompts({"executor.reason": instruction})


def test_the_best_is_who_is_good_on_much_and_not_who_was_lucky_once() -> None:
    trials, start = Trials(), prompts("start")
    for example in range(8):
        trials.note(start, str(example), 0.0)
        trials.note(prompts("steady"), str(example), 1.0 if example < 6 else 0.0)
    trials.note(prompts("lucky"), "0", 1.0)
    assert [each.instructions["executor.reason"] for each in trials.best(3, but=start)] == ["steady", "lucky"]


def test_the_same_prompts_are_one_trial() -> None:
    trials = Trials()
    trials.note(prompts("a"), "1", 1.0)
    trials.note(prompts("a"), "2", 0.0)
    assert len(trials) == 1


def test_a_student_shows_only_what_may_change_and_has_signatures_of_its_own() -> None:
    program = Coda()
    student = Student(program, ["planner.propose"], Gate((), 1))
    copy = student.deepcopy()
    assert [name for name, _ in copy.named_predictors()] == ["planner.propose"]
    copy.predictors()[0].signature.instructions = "changed"
    assert program.planner.propose.signature.instructions != "changed"
    assert student.predictors()[0].signature.instructions != "changed"


def test_demos_that_were_salvaged_or_lack_an_output_are_left_out() -> None:
    whole = dspy.Example(problem="?", reasoning="so", answer="4")
    assert complete(Reason, whole)
    assert not complete(Reason, dspy.Example(problem="?", answer="4"))
    assert not complete(Reason, whole.copy(**{SALVAGED: True}))
    made = with_prompts(Coda(), Prompts(demos={"executor.reason": [dspy.Example(problem="?"), whole]}))
    assert prompts_of(made.named_predictors()).demos["executor.reason"] == [whole]
