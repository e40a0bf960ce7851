"""The distinct answers of a problem's attempts, and what speaks for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coda.program.answers import group
from coda.program.types import Attempt, Problem


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


async def standings(problem: Problem, attempts: Sequence[Attempt]) -> list[Standing]:
    """The distinct answers, best first: by votes, then by evidence, then in the order in which they came."""
    classes = await group([attempt.answer for attempt in attempts], problem.task, problem.choices)
    return ordered([standing_of(members, attempts) for members in classes])


def standing_of(members: Sequence[int], attempts: Sequence[Attempt]) -> Standing:
    """The standing of the answer that these attempts gave."""
    champion = max(members, key=lambda index: (evidence(attempts[index]), -index))
    return Standing(tuple(members), champion, evidence(attempts[champion]))


def ordered(found: Sequence[Standing]) -> list[Standing]:
    """By votes, then by evidence, then in the order in which they came."""
    return sorted(found, key=lambda standing: (-standing.votes, -standing.evidence, standing.members[0]))


def evidence(attempt: Attempt) -> int:
    """How much speaks for an attempt besides its own words: 2 tests passed, 1 a program ran, 0 nothing, -1 cut off."""
    if attempt.finish != "ok":
        return -1
    if attempt.execution is None or attempt.execution.outcome != "ok":
        return 0
    return 2 if attempt.execution.tests_passed else 1


def share_of_tests(attempt: Attempt) -> float:
    """The share of the visible tests that an attempt's program passes; without any, a half if it runs."""
    run = attempt.execution
    if run is None:
        return 0.0
    if run.tests_total:
        return (run.tests_passed or 0) / run.tests_total
    return 0.5 if run.outcome == "ok" else 0.0


def passes_all_tests(attempt: Attempt) -> bool:
    """Whether there were visible tests, and the attempt's program passed them all."""
    run = attempt.execution
    return run is not None and run.outcome == "ok" and bool(run.tests_total) and run.tests_passed == run.tests_total


def share_of_votes(votes: int, total: int) -> float:
    """How sure a vote makes us: the share of votes, drawn towards a half where there are few (rule of succession)."""
    return (votes + 1) / (total + 2)
