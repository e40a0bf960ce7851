"""The verifier: chooses among the attempts without knowing the right answer."""

from __future__ import annotations

from dataclasses import dataclass

import dspy

from coda.program.answers import group
from coda.program.concurrency import gather_ordered
from coda.program.presentation import exhibit, statement
from coda.program.settings import Settings
from coda.program.stage import Stage, without_written_reasoning
from coda.program.types import Attempt, Problem, Verdict
from coda.signatures.verification import Compare

NOTHING = Verdict(answer=None, confidence=0.0, reason="no attempt gave an answer", strategy="none")


@dataclass(frozen=True)
class Standing:
    """One distinct answer, with the attempts that gave it.

    Attributes:
        members: Their indices, in the order of the attempts.
        champion: The index of the member with the best evidence.
        evidence: How good that evidence is, see `evidence`.
    """

    members: tuple[int, ...]
    champion: int
    evidence: int

    @property
    def votes(self) -> int:
        """How many attempts gave this answer."""
        return len(self.members)


class Verifier(Stage):
    """Chooses by agreement, by tests, or by comparing distinct answers in pairs; see ``Settings.verifier``."""

    stage = "verifier"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.verifier_stage)
        self.settings = settings
        self.compare = dspy.Predict(Compare if settings.written_reasoning else without_written_reasoning(Compare))

    async def agreed(self, problem: Problem, attempts: tuple[Attempt, ...]) -> bool:
        """Whether the search can stop: enough attempts give the same answer, or one passes all visible tests."""
        if any(_passes_all_tests(attempt) for attempt in attempts):
            return True
        found = await standings(problem, attempts)
        return bool(found) and found[0].votes >= self.settings.quorum

    async def aforward(self, problem: Problem, attempts: tuple[Attempt, ...]) -> Verdict:
        """Choose among the attempts."""
        found = await standings(problem, attempts)
        if not found:
            return NOTHING
        strategy = self.settings.verifier
        if strategy == "tests" or (strategy == "auto" and problem.task == "code"):
            return _by_tests(attempts, found)
        if strategy == "compare":
            return await self._by_comparison(problem, attempts, found)
        return await self._by_majority(problem, attempts, found, break_ties=strategy == "auto")

    async def _by_majority(
        self, problem: Problem, attempts: tuple[Attempt, ...], found: list[Standing], *, break_ties: bool
    ) -> Verdict:
        """Take the most frequent answer; among equals the one with better evidence, and at last the comparison's."""
        best = found[0]
        tied = [s for s in found if (s.votes, s.evidence) == (best.votes, best.evidence)]
        if len(tied) > 1 and break_ties:
            return await self._by_comparison(problem, attempts, tied)
        total = sum(standing.votes for standing in found)
        return _verdict(attempts, best, best.votes / total, f"{best.votes} of {total} answers agree", "majority")

    async def _by_comparison(self, problem: Problem, attempts: tuple[Attempt, ...], found: list[Standing]) -> Verdict:
        """Knock out distinct answers in pairs; each pair is shown in both orders, since order sways a judge."""
        winner, decided = found[0], True
        for challenger in found[1:]:
            preferred = await self._better(problem, attempts[winner.champion], attempts[challenger.champion])
            decided = preferred is not None
            winner = challenger if preferred == "second" else winner
        votes, total = winner.votes, sum(standing.votes for standing in found)
        sure = 0.5 + 0.5 * votes / total if decided else votes / total
        reason = "preferred in both orders" if decided else "the comparison depended on the order; the vote decided"
        if len(found) == 1:
            reason = "the only answer"
        return _verdict(attempts, winner, sure, reason, "compare")

    async def _better(self, problem: Problem, first: Attempt, second: Attempt) -> str | None:
        """Compare two attempts: "first", "second", or ``None`` where the two orders contradict each other."""
        text, one, two = statement(problem), exhibit(first), exhibit(second)
        straight, swapped = await gather_ordered(
            [
                self.ask(self.compare, turn=0, problem=text, first=one, second=two),
                self.ask(self.compare, turn=1, problem=text, first=two, second=one),
            ]
        )
        mirror = {"first": "second", "second": "first"}
        votes = {straight.get("better"), mirror.get(swapped.get("better"), "")} - {""}
        return votes.pop() if len(votes) == 1 else None


async def standings(problem: Problem, attempts: tuple[Attempt, ...]) -> list[Standing]:
    """The distinct answers, best first: by votes, then by evidence, then in the order in which they came."""
    classes = await group([attempt.answer for attempt in attempts], problem.task, problem.choices)
    found = []
    for members in classes:
        champion = max(members, key=lambda index: (evidence(attempts[index]), -index))
        found.append(Standing(tuple(members), champion, evidence(attempts[champion])))
    return sorted(found, key=lambda standing: (-standing.votes, -standing.evidence, standing.members[0]))


def evidence(attempt: Attempt) -> int:
    """How much speaks for an attempt besides its own words: 2 tests passed, 1 a program ran, 0 nothing, -1 cut off."""
    if attempt.finish != "ok":
        return -1
    if attempt.execution is None or attempt.execution.outcome != "ok":
        return 0
    return 2 if attempt.execution.tests_passed else 1


def _by_tests(attempts: tuple[Attempt, ...], found: list[Standing]) -> Verdict:
    """Take the attempt that passes most of the visible tests; among equals, the most frequent one."""

    def passed(standing: Standing) -> float:
        execution = attempts[standing.champion].execution
        if execution is None:
            return 0.0
        if execution.tests_total:
            return (execution.tests_passed or 0) / execution.tests_total
        return 0.5 if execution.outcome == "ok" else 0.0

    best = max(found, key=passed)
    share = passed(best)
    execution = attempts[best.champion].execution
    reason = "no visible tests; it runs" if share else "nothing passed"
    if execution is not None and execution.tests_total:
        reason = f"passes {execution.tests_passed} of {execution.tests_total} visible tests"
    return _verdict(attempts, best, share, reason, "tests")


def _passes_all_tests(attempt: Attempt) -> bool:
    run = attempt.execution
    return run is not None and run.outcome == "ok" and bool(run.tests_total) and run.tests_passed == run.tests_total


def _verdict(attempts: tuple[Attempt, ...], best: Standing, confidence: float, reason: str, strategy: str) -> Verdict:
    return Verdict(
        answer=attempts[best.champion].answer,
        confidence=confidence,
        reason=reason,
        strategy=strategy,
        chosen=best.champion,
    )
