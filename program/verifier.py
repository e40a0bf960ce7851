"""The verifier: chooses among the attempts without knowing the right answer."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

import dspy

from coda.program.behaviour import alike, behaviours, function_in, readable_calls
from coda.program.concurrency import gather_ordered
from coda.program.engine import Engine
from coda.program.knockout import Knockout, Preference, knockout
from coda.program.presentation import exhibit, statement
from coda.program.settings import Scorer, Settings
from coda.program.stage import Stage, without_written_reasoning
from coda.program.standings import (
    Standing,
    ordered,
    passes_all_tests,
    share_of_tests,
    share_of_votes,
    standing_of,
    standings,
)
from coda.program.tools.sandbox import Sandbox
from coda.program.trial import run_limits
from coda.program.types import Attempt, Problem, Ranked, Verdict
from coda.signatures.verification import Compare, Judge, WriteInputs

NOTHING = Verdict(answer=None, confidence=0.0, reason="no attempt gave an answer", strategy="none")

SAMPLING = 0.7
"""Temperature of judgements, where an answer gets several."""

Attempts = tuple[Attempt, ...]
Scores = dict[int, float]
"""From 0 to 1, by the standing's champion."""


class Verifier(Stage):
    """Chooses by agreement, by tests, or by what the Engine says of the answers; see ``Settings.verifier``.

    Args:
        settings: How.
        sandbox: Where programs are compared by what they do.
        engine: An Engine of its own, such as a stronger one; by default the program's.
    """

    stage = "verifier"

    def __init__(self, settings: Settings, sandbox: Sandbox, engine: Engine | None = None) -> None:
        super().__init__(settings.verifier_stage, engine)
        self.settings = settings
        self.sandbox = sandbox
        written = settings.written_reasoning
        self.compare = dspy.Predict(Compare if written else without_written_reasoning(Compare))
        self.judge = dspy.Predict(Judge if written else without_written_reasoning(Judge))
        self.inputs = dspy.Predict(WriteInputs)

    async def agreed(self, problem: Problem, attempts: Attempts) -> bool:
        """Whether the search can stop: one answer leads all others by the quorum, or passes all visible tests.

        The lead is what counts, not the number (Wald's sequential test of two hypotheses): two paths that agree at once
        are much better evidence than the second of four. A reflection's answer does not count: it has seen the others.
        """
        quorum = self.settings.at(problem.task).quorum
        if not quorum:
            return False
        if any(map(passes_all_tests, attempts)):
            return True
        found = await standings(problem, [attempt for attempt in attempts if attempt.origin == "path"])
        votes = [standing.votes for standing in found[:2]]
        return bool(votes) and votes[0] - sum(votes[1:]) >= quorum

    async def aforward(self, problem: Problem, attempts: Attempts) -> Verdict:
        """Choose among the attempts."""
        found = await standings(problem, attempts)
        if not found:
            return NOTHING
        strategy = self.settings.at(problem.task).verifier
        if strategy == "auto":
            strategy = "tests" if problem.task == "code" else "majority"
        ways: dict[str, Callable[[Problem, Attempts, list[Standing]], Awaitable[Verdict]]] = {
            "vote": self._by_vote,
            "majority": self._by_majority,
            "judge": self._by_judgement,
            "compare": self._by_comparison,
            "tests": self._by_tests,
            "weighted": self._by_weight,
        }
        return await ways[strategy](problem, attempts, found)

    async def _by_vote(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Verdict:
        """Take the most frequent answer; among equals the one with better evidence, or the first."""
        total = sum(standing.votes for standing in found)
        scores = {each.champion: share_of_votes(each.votes, total) for each in found}
        reason = f"{found[0].votes} of {total} answers agree"
        return _verdict("vote", attempts, found, scores, (scores[found[0].champion], reason))

    async def _by_majority(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Verdict:
        """Take the most frequent answer; among equals the one with better evidence, and at last the comparison's."""
        best = found[0]
        tied = [each for each in found if (each.votes, each.evidence) == (best.votes, best.evidence)]
        if len(tied) == 1:
            verdict = await self._by_vote(problem, attempts, found)
            return verdict.model_copy(update={"strategy": "majority"})
        return await self._by_comparison(problem, attempts, found, len(tied))

    async def _by_comparison(
        self, problem: Problem, attempts: Attempts, found: list[Standing], contenders: int | None = None
    ) -> Verdict:
        """Knock out distinct answers in pairs, those with the best standing alone where only some are tied."""
        ended = await self._knockout(problem, attempts, found[:contenders])
        votes, total = ended.winner.votes, sum(standing.votes for standing in found)
        share = share_of_votes(votes, total)
        swayed = "the comparison depended on the order; the vote decided"
        reason = "preferred in both orders" if ended.decided else swayed
        if len(found) == 1:
            reason = "the only answer"
        best = [ended.winner, *(each for each in found if each is not ended.winner)]
        scores = {each.champion: ended.score(each) for each in found}
        sure = 0.5 + 0.5 * share if ended.decided and len(found) > 1 else share
        return _verdict("compare", attempts, best, scores, (sure, reason))

    async def _by_judgement(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Verdict:
        """Take the answer that is judged best on its own; among equals the one with the better standing."""
        scores = await self._judged(problem, attempts, found)
        best = sorted(found, key=lambda each: -scores[each.champion])
        top = scores[best[0].champion]
        return _verdict("judge", attempts, best, scores, (top, f"judged right with {top:.0%}"))

    async def _by_tests(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Verdict:
        """Take the program that passes most of the visible tests; among equals the one that behaves as most do."""
        scores = {each.champion: share_of_tests(attempts[each.champion]) for each in found}
        best = sorted(found, key=lambda each: -scores[each.champion])
        top = scores[best[0].champion]
        run = attempts[best[0].champion].execution
        if run is not None and run.tests_total:
            reason, sure = f"passes {run.tests_passed} of {run.tests_total} visible tests", top if top == 1 else top / 2
        else:
            reason, sure = ("no visible tests; it runs", 0.5) if top else ("nothing passed", 0.0)
        tied = [each for each in best if scores[each.champion] == top and top > 0]
        if len(tied) > 1 and problem.task == "code" and self.settings.written_tests:
            classes = await self._by_behaviour(problem, attempts, tied)
            if classes:
                votes, total = classes[0].votes, sum(each.votes for each in classes)
                best = [classes[0], *(each for each in best if each.champion not in classes[0].members)]
                scores[classes[0].champion] = top
                reason = f"{reason}; {votes} of {total} programs behave alike"
                sure = top * share_of_votes(votes, total)
        return _verdict("tests", attempts, best, scores, (sure, reason))

    async def _by_weight(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Verdict:
        """Add up weighted scores; without visible tests they do not count: that a program runs is no test."""
        weights = {name: weight for name, weight in self.settings.weights.items() if weight > 0}
        if not any(attempt.execution is not None and attempt.execution.tests_total for attempt in attempts):
            weights.pop("tests", None)
        names: list[Scorer] = list(weights) or ["vote"]
        scored = await gather_ordered(self._scores(name, problem, attempts, found) for name in names)
        whole = sum(weights.get(name, 1.0) for name in names)
        scores = {
            each.champion: math.fsum(
                weights.get(name, 1.0) * own[each.champion] for name, own in zip(names, scored, strict=True)
            )
            / whole
            for each in found
        }
        best = sorted(found, key=lambda each: -scores[each.champion])
        top = scores[best[0].champion]
        parts = ", ".join(f"{name} {own[best[0].champion]:.2f}" for name, own in zip(names, scored, strict=True))
        return _verdict("weighted", attempts, best, scores, (top, parts))

    async def _scores(self, name: Scorer, problem: Problem, attempts: Attempts, found: list[Standing]) -> Scores:
        """What one scorer gives to each distinct answer."""
        if name == "judge":
            return await self._judged(problem, attempts, found)
        if name == "compare":
            ended = await self._knockout(problem, attempts, found)
            return {each.champion: ended.score(each) for each in found}
        if name == "tests":
            return {each.champion: share_of_tests(attempts[each.champion]) for each in found}
        total = sum(each.votes for each in found)
        return {each.champion: share_of_votes(each.votes, total) for each in found}

    async def _judged(self, problem: Problem, attempts: Attempts, found: list[Standing]) -> Scores:
        """The chance that each distinct answer is right, by what the Engine says of it."""
        samples = self.settings.judge_samples
        sampling = self.settings.verifier_stage
        if samples > 1:
            sampling = sampling.model_copy(update={"temperature": sampling.temperature or SAMPLING})
        asked = await gather_ordered(
            self.ask(
                self.judge,
                turn=turn,
                sampling=sampling,
                problem=statement(problem),
                attempt=exhibit(attempts[each.champion]),
            )
            for each in found
            for turn in range(samples)
        )
        said = [each.get("verdict") for each in asked]
        return {
            each.champion: chance_right(said[place * samples : (place + 1) * samples], self.settings.judge_rates)
            for place, each in enumerate(found)
        }

    async def _knockout(self, problem: Problem, attempts: Attempts, contenders: Sequence[Standing]) -> Knockout:
        async def better(one: Standing, two: Standing) -> Preference:
            return await self._better(problem, attempts[one.champion], attempts[two.champion])

        return await knockout(contenders, better)

    async def _better(self, problem: Problem, first: Attempt, second: Attempt) -> Preference:
        """Compare two attempts, in both orders, since order sways a judge."""
        text, one, two = statement(problem), exhibit(first), exhibit(second)
        straight, swapped = await gather_ordered(
            [
                self.ask(self.compare, turn=0, problem=text, first=one, second=two),
                self.ask(self.compare, turn=1, problem=text, first=two, second=one),
            ]
        )
        mirror = {"first": "second", "second": "first"}
        votes = {straight.get("better"), mirror.get(swapped.get("better"), "")} - {""}
        if len(votes) != 1:
            return None
        return "first" if votes == {"first"} else "second"

    async def _by_behaviour(self, problem: Problem, attempts: Attempts, tied: list[Standing]) -> list[Standing]:
        """Programs that the tests cannot tell apart, as classes of the same behaviour on calls that the Engine writes.

        Empty where there is nothing to call, or no call that can be read.
        """
        members = [index for each in tied for index in each.members]
        programs = [attempts[index].code or "" for index in members]
        function = function_in(programs, problem.entry_point)
        if function is None:
            return []
        asked = await self.ask(self.inputs, problem=statement(problem), function=function)
        calls = readable_calls(asked.get("calls") or asked.text, function)
        if not calls:
            return []
        classes = alike(await behaviours(self.sandbox, programs, calls, run_limits(self.settings)))
        return ordered([standing_of(sorted(members[place] for place in each), attempts) for each in classes])


def chance_right(said: Sequence[str], rates: tuple[float, float] | None) -> float:
    """The chance that an answer is right, given what was said of it.

    Args:
        said: ``right`` or ``wrong`` for each judgement; anything else is no judgement.
        rates: How often the judge calls a right answer right, and a wrong one; both answers are taken to be equally
            likely before. Where they are not known: the rule of succession on the judgements alone.
    """
    right, wrong = said.count("right"), said.count("wrong")
    if rates is None:
        return (right + 1) / (right + wrong + 2)
    hit, false_alarm = rates
    odds = (hit / false_alarm) ** right * ((1 - hit) / (1 - false_alarm)) ** wrong
    return odds / (1 + odds)


def _verdict(
    strategy: str, attempts: Attempts, best: Sequence[Standing], scores: Scores, conclusion: tuple[float, str]
) -> Verdict:
    """The verdict for the first of the standings; ``conclusion`` is how sure it is, and why."""
    sure, reason = conclusion
    answers = [attempts[each.champion].answer or "" for each in best]
    ranking = tuple(
        Ranked(answer=answer, votes=each.votes, score=scores.get(each.champion, 0.0), attempts=each.members)
        for answer, each in zip(answers, best, strict=True)
    )
    chosen = best[0].champion
    return Verdict(
        answer=attempts[chosen].answer,
        confidence=sure,
        reason=reason,
        strategy=strategy,
        chosen=chosen,
        ranking=ranking,
    )
