"""The verifier: chooses by agreement, by tests, or by comparison, never by the answer's own claim."""

from __future__ import annotations

from typing import Any

from coda.program.settings import Settings
from coda.program.types import Attempt, Execution, Path, Problem
from coda.program.verifier import evidence, standings

PROBLEM = Problem(text="What is a half of a half?")


def said(answer: str | None, **more: Any) -> Attempt:
    return Attempt(path=Path(mode="reason"), answer=answer, **more)


async def test_majority_groups_equal_fractions() -> None:
    found = await standings(PROBLEM, (said("1/4"), said("1/2"), said("0.25")))
    assert [standing.members for standing in found] == [(0, 2), (1,)]


async def test_attempts_without_an_answer_have_no_standing() -> None:
    assert await standings(PROBLEM, (said(None), said(None))) == []


async def test_a_program_that_ran_stands_before_mere_words() -> None:
    ran = said("2", execution=Execution(outcome="ok", stdout="2"))
    found = await standings(PROBLEM, (said("1"), ran))
    assert [standing.champion for standing in found] == [1, 0]


def test_evidence_counts_tests_over_runs_over_words_over_cut_off_replies() -> None:
    passed = said("1", execution=Execution(outcome="ok", tests_passed=2, tests_total=2))
    ran = said("1", execution=Execution(outcome="ok"))
    ranks = [evidence(each) for each in (passed, ran, said("1"), said("1", finish="truncated"))]
    assert ranks == sorted(ranks, reverse=True)
    assert len(set(ranks)) == 4


def test_a_tie_is_decided_by_comparing_in_both_orders(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason")})

    def prefer_42(text: str) -> str:
        return "Answer: first" if text.index("Answer: 42") < text.index("Answer: 41") else "Answer: second"

    program = pipeline(settings, reason=["Answer: 41", "Answer: 42"], compare=prefer_42)
    verdict = program.solve(PROBLEM).verdict
    assert (verdict.answer, verdict.strategy, verdict.reason) == ("42", "compare", "preferred in both orders")
    assert pipeline.asked.count("compare") == 2


def test_a_judge_swayed_by_the_order_does_not_decide(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason")})
    program = pipeline(settings, reason=["Answer: 41", "Answer: 42"], compare="Answer: first")
    verdict = program.solve(PROBLEM).verdict
    assert verdict.confidence == 0.5
    assert "depended on the order" in verdict.reason


def test_majority_never_asks_the_engine(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason"), "verifier": "majority"})
    verdict = pipeline(settings, reason=["Answer: 41", "Answer: 42"]).solve(PROBLEM).verdict
    assert verdict.strategy == "majority"
    assert pipeline.asked == ["reason", "reason"]


def test_nothing_to_choose_from_is_a_verdict_too(pipeline: Any, plain: Settings) -> None:
    solution = pipeline(plain.model_copy(update={"paths": ("reason",)}), reason="I do not know.").solve(PROBLEM)
    assert solution.answer is None
    assert solution.verdict.reason == "no attempt gave an answer"
