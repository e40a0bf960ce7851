"""The reflector: sees all attempts with their evidence; its answer joins them."""

from __future__ import annotations

from typing import Any

import pytest

from coda.program.presentation import exhibits
from coda.program.settings import Limits, Settings
from coda.program.types import Attempt, Execution, Problem

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


def shown(*attempts: Attempt, room: int | None = None) -> str:
    return exhibits(attempts, room=room)


LONG = Attempt(answer="42", reasoning="first " + "so " * 2000 + "last")
PROGRAM = Attempt(answer="7", code="print(7)\n" * 200, execution=Execution(outcome="ok", stdout="7\n"))


def test_reasoning_gives_way_before_answers() -> None:
    roomy, tight = shown(LONG, PROGRAM), shown(LONG, PROGRAM, room=2500)
    assert roomy.count("so ") > 2 * tight.count("so ")
    assert len(tight) <= 2500 < len(roomy)
    for text in (roomy, tight):
        assert "Answer: 42" in text
        assert "Answer: 7" in text
    assert PROGRAM.code is not None
    assert PROGRAM.code.strip() in tight


def test_programs_give_way_last_and_answers_never() -> None:
    least = shown(LONG, PROGRAM, room=10)
    assert "Answer: 42" in least
    assert "Answer: 7" in least
    assert "characters left out" in least


def test_attempts_are_trimmed_to_the_engine_s_context(pipeline: Any, plain: Settings, monkeypatch: Any) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason"), "reflect": True})
    long = "so " * 600
    program = pipeline(settings, reason=[f"{long}\nAnswer: 41", f"{long}\nAnswer: 42"], reconcile="Answer: 42")
    monkeypatch.setattr(program.engine, "profile", program.engine.profile.model_copy(update={"context": 1600}))
    program.solve(PROBLEM)
    text = pipeline.engine.bodies[-1]["messages"][-1]["content"]
    assert "Answer: 41" in text
    assert len(text) <= 2400


def test_what_does_not_convince_is_restated_for_another_round(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(
        update={"paths": ("reason",) * 2, "max_paths": 2, "reflect": True, "max_rounds": 2, "verifier": "vote"}
    )
    replies = ["Answer: 1", "Answer: 2", "Answer: 42", "Answer: 42"]
    reconciled = ["Answer: 3", "Answer: 42"]
    program = pipeline(settings, reason=replies, reconcile=reconciled, restate="Six sevens are asked for.")
    solution = program.solve(PROBLEM)
    assert pipeline.asked == ["reason", "reason", "reconcile", "restate", "reason", "reason", "reconcile"]
    assert (solution.answer, solution.rounds, solution.early_exit) == ("42", 2, False)
    assert solution.restatements == ("Six sevens are asked for.",)
    assert [attempt.round for attempt in solution.attempts] == [1, 1, 1, 2, 2, 2]
    second = pipeline.engine.bodies[-1]["messages"][-1]["content"]
    assert PROBLEM.text in second
    assert "Six sevens are asked for." in second


def test_rounds_end_with_their_number(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(
        update={"paths": ("reason",) * 2, "max_paths": 2, "reflect": True, "max_rounds": 3, "verifier": "vote"}
    )
    replies = [f"Answer: {n}" for n in range(6)]
    solution = pipeline(settings, reason=replies, reconcile=["7", "8", "9"], restate="Again.").solve(PROBLEM)
    assert solution.rounds == 3
    assert len(solution.attempts) == 9
    assert solution.stopped is None


def test_a_budget_ends_the_rounds_with_the_best_answer_so_far(pipeline: Any, plain: Settings) -> None:
    limits = Limits(max_calls=4)
    settings = plain.model_copy(
        update={"paths": ("reason",) * 3, "max_paths": 3, "reflect": True, "max_rounds": 9, "per_problem": limits}
    )
    settings = settings.model_copy(update={"verifier": "vote", "quorum": 3, "convinced": 0.9})
    replies = ["Answer: 1", "Answer: 2", "Answer: 2"]
    solution = pipeline(settings, reason=replies, reconcile="Answer: 3", restate="Again.").solve(PROBLEM)
    assert pipeline.engine.requests == 4
    assert (solution.answer, solution.fault) == ("2", "budget")


def test_a_reflection_s_echo_is_no_agreement(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 2, "max_paths": 2, "reflect": True, "verifier": "vote"})
    solution = pipeline(settings, reason=["Answer: 1", "Answer: 2"], reconcile="Answer: 2").solve(PROBLEM)
    assert solution.answer == "2"
    assert not solution.early_exit
