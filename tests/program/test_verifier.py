"""The verifier: chooses by agreement, by tests, or by comparison, never by the answer's own claim."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from local_engine import Answer

from coda.program.conductor import Coda
from coda.program.knockout import Preference, knockout
from coda.program.settings import Settings
from coda.program.standings import Standing, evidence, share_of_votes, standings
from coda.program.types import Attempt, Execution, Path, Problem, Verdict
from coda.program.verifier import chance_right

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


def test_a_vote_never_asks_the_engine(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason", "reason"), "verifier": "vote"})
    verdict = pipeline(settings, reason=["Answer: 41", "Answer: 42"]).solve(PROBLEM).verdict
    assert verdict.strategy == "vote"
    assert pipeline.asked == ["reason", "reason"]


def test_nothing_to_choose_from_is_a_verdict_too(pipeline: Any, plain: Settings) -> None:
    solution = pipeline(plain.model_copy(update={"paths": ("reason",)}), reason="I do not know.").solve(PROBLEM)
    assert solution.answer is None
    assert solution.verdict.reason == "no attempt gave an answer"


def votes(plain: Settings, answers: list[str], verifier: str, **more: Any) -> tuple[Settings, list[str | Answer]]:
    """Settings that sample so many answers and verify them in one way, and the replies that give the answers."""
    paths = ("reason",) * len(answers)
    update = {"paths": paths, "max_paths": len(paths), "quorum": 0, "verifier": verifier, **more}
    return plain.model_copy(update=update), [f"Answer: {answer}" for answer in answers]


def ranking(verdict: Verdict) -> list[tuple[str, int]]:
    return [(each.answer, each.votes) for each in verdict.ranking]


def test_the_verdict_ranks_all_distinct_answers(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1", "2", "2", "3", "2"], "vote")
    verdict = pipeline(settings, reason=replies).solve(PROBLEM).verdict
    assert ranking(verdict) == [("2", 3), ("1", 1), ("3", 1)]
    assert verdict.confidence == pytest.approx(share_of_votes(3, 5)) == pytest.approx(4 / 7)


def test_majority_asks_only_about_the_tied_answers(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1", "1", "2", "2", "3"], "majority")
    verdict = pipeline(settings, reason=replies, compare=prefer("2")).solve(PROBLEM).verdict
    assert verdict.answer == "2"
    assert pipeline.asked.count("compare") == 2
    assert ranking(verdict) == [("2", 2), ("1", 2), ("3", 1)]


def prefer(answer: str) -> Callable[[str], str]:
    """A judge that prefers one answer, wherever it stands."""

    def compare(text: str) -> str:
        _, second = re.split(r"(?i)\n.{0,6}\bsecond\b", text, maxsplit=1)
        return "Answer: second" if f"Answer: {answer}" in second else "Answer: first"

    return compare


def test_comparisons_grow_with_the_answers_not_with_the_attempts(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1"] * 5 + ["2"] * 3 + ["3"] * 2, "compare")
    verdict = pipeline(settings, reason=replies, compare=prefer("3")).solve(PROBLEM).verdict
    assert verdict.answer == "3"
    assert pipeline.asked.count("compare") == 4


def test_each_answer_is_judged_on_its_own(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1", "1", "2"], "judge")

    def judge(text: str) -> str:
        return "Answer: right" if "Answer: 2" in text else "Answer: wrong"

    verdict = pipeline(settings, reason=replies, judge=judge).solve(PROBLEM).verdict
    assert (verdict.answer, verdict.strategy) == ("2", "judge")
    assert verdict.confidence == pytest.approx(2 / 3)
    assert pipeline.asked.count("judge") == 2


def test_several_judgements_are_several_requests(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1"], "judge", judge_samples=3)
    verdict = pipeline(settings, reason=replies, judge=["right", "wrong", "right"]).solve(PROBLEM).verdict
    assert pipeline.asked.count("judge") == 3
    assert verdict.confidence == pytest.approx(3 / 5)


def test_a_judge_s_measured_rates_make_a_chance() -> None:
    assert chance_right(["right"], (0.9, 0.6)) == pytest.approx(0.6)
    assert chance_right(["wrong"], (0.9, 0.6)) == pytest.approx(0.2)
    assert chance_right(["right", "wrong"], (0.8, 0.2)) == pytest.approx(0.5)


def test_a_judge_that_says_nothing_says_nothing() -> None:
    assert chance_right(["", "maybe"], None) == 0.5
    assert chance_right([""], (0.9, 0.1)) == 0.5


def test_weighted_scores_add_up(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1", "1", "2"], "weighted", weights={"vote": 1.0, "judge": 1.0})

    def judge(text: str) -> str:
        return "right" if "Answer: 2" in text else "wrong"

    verdict = pipeline(settings, reason=replies, judge=judge).solve(PROBLEM).verdict
    scores = {each.answer: each.score for each in verdict.ranking}
    assert scores == pytest.approx({"1": (3 / 5 + 1 / 3) / 2, "2": (2 / 5 + 2 / 3) / 2})
    assert verdict.answer == "2"


def test_tests_do_not_weigh_where_nothing_was_run(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["1", "1", "2"], "weighted", weights={"vote": 1.0, "tests": 9.0})
    verdict = pipeline(settings, reason=replies).solve(PROBLEM).verdict
    assert verdict.confidence == pytest.approx(3 / 5)


def standing(place: int) -> Standing:
    return Standing((place,), place, 0)


async def test_a_knockout_needs_one_comparison_fewer_than_there_are_answers() -> None:
    asked = []

    async def better(one: Standing, two: Standing) -> Preference:
        asked.append((one.champion, two.champion))
        return "second" if two.champion == 3 else "first"

    ended = await knockout([standing(place) for place in range(5)], better)
    assert (ended.winner.champion, ended.decided, len(asked)) == (3, True, 4)
    assert asked[:2] == [(0, 4), (1, 3)]


async def test_the_better_standing_goes_on_where_the_judge_cannot_tell() -> None:
    async def better(one: Standing, two: Standing) -> Preference:
        return None

    ended = await knockout([standing(place) for place in range(4)], better)
    assert (ended.winner.champion, ended.decided) == (0, False)


DOUBLE = Problem(text="Write double(n), which doubles n.", task="code", entry_point="double")


@pytest.mark.usefixtures("sandboxed")
def test_programs_that_behave_alike_are_one_answer(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("code",) * 3, "max_paths": 3, "quorum": 0, "verifier": "tests"})
    programs = [
        "def double(n):\n    return n ** 2",
        "def double(n):\n    return n + n",
        "def double(n):\n    return 2 * n",
    ]
    calls = "double(2)\n- `double(3)`\ndouble(exit())\nopen('x')\ndouble(-1)"
    verdict = pipeline(settings, function=programs, inputs=calls).solve(DOUBLE).verdict
    assert verdict.answer in programs[1:]
    assert "2 of 3 programs behave alike" in verdict.reason
    assert verdict.ranking[0].votes == 2


@pytest.mark.usefixtures("sandboxed")
def test_visible_tests_that_decide_need_no_written_ones(pipeline: Any, plain: Settings) -> None:
    problem = DOUBLE.model_copy(update={"tests": ("assert double(3) == 6",)})
    settings = plain.model_copy(
        update={"paths": ("code",) * 2, "max_paths": 2, "quorum": 0, "verifier": "tests", "max_refinements": 0}
    )
    programs = ["def double(n):\n    return n ** 2", "def double(n):\n    return n + n"]
    verdict = pipeline(settings, function=programs).solve(problem).verdict
    assert verdict.answer == programs[1]
    assert verdict.confidence == 1.0


def test_the_verifier_may_have_an_engine_of_its_own(pipeline: Any, plain: Settings) -> None:
    settings, replies = votes(plain, ["41", "42"], "compare")
    judge = pipeline(plain, compare=prefer("42"))
    stronger = pipeline.engine
    program = pipeline(settings, reason=replies)
    both = Coda(settings, engine=program.engine, verifier_engine=judge.engine)
    assert both.solve(PROBLEM).answer == "42"
    assert (stronger.requests, pipeline.engine.requests) == (2, 2)
