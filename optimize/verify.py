"""Grading recorded answers, and trying ways to choose among them: behind ``coda verify``.

Nothing is asked of an Engine, unless a strategy does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import fmean
from typing import cast

from pydantic import Field

from coda.data.examples import Example
from coda.data.grading import Grade, agrade
from coda.errors import EngineError, FaultKind
from coda.optimize import stats
from coda.optimize.recorded import Recorded, Sample
from coda.program.answers import extract
from coda.program.concurrency import gather_ordered
from coda.program.settings import Settings, Strategy
from coda.program.stage import noting_troubles
from coda.program.tools.sandbox import Sandbox, shared_sandbox
from coda.program.types import Attempt, Frozen, Problem, Verdict
from coda.program.verifier import Verifier

AT_ONCE = 32
"""Problems that are graded at once: memory stays bounded whatever the file's size."""

MANY_FAILURES = 10
"""Problems on which an Engine that never answered may fail before the work ends."""

Choose = Callable[[Problem, tuple[Attempt, ...]], Awaitable[int | None]]
"""Chooses one of the attempts by its index; ``None`` chooses none."""


class Disagreement(Frozen):
    """A sample that is graded otherwise than its label says."""

    id: str
    sample: int
    """Its number, from 0."""
    answer: str | None
    """What was extracted."""
    expected: str
    graded: bool
    labelled: bool
    feedback: str


class Verification(Frozen):
    """What recorded answers are worth, and what choosing among them makes of it.

    Shares are of problems (``oracle``, ``strategies``) or means over problems of the share of right samples
    (``pass_at_1``), from 0 to 1.
    """

    n: int
    """Problems."""
    samples: int
    pass_at_1: float
    majority: float
    oracle: float
    """Problems of which at least one sample is right: no choice can do better."""
    strategies: dict[str, float]
    ci95: dict[str, tuple[float, float]]
    """Intervals of the shares above, over problems."""
    labelled: int
    """Samples with a label."""
    label_agreement: float | None
    disagreements: tuple[Disagreement, ...]
    troubles: dict[str, int] = Field(default_factory=dict)
    """Requests of strategies that came to nothing, by ``budget`` or how the Engine failed; there the vote decided."""
    trouble: str = ""
    """What the first of them was told."""


class _Outcome(Frozen):
    """One problem, graded."""

    example: Example
    answers: tuple[str | None, ...]
    grades: tuple[Grade, ...]
    chosen: dict[str, int | None]
    troubles: tuple[tuple[str, str], ...] = ()

    def right(self, strategy: str) -> float:
        place = self.chosen[strategy]
        return 0.0 if place is None else float(self.grades[place].correct)


async def averify(
    recorded: Sequence[Recorded],
    strategies: Mapping[str, Choose] | None = None,
    *,
    sandbox: Sandbox | None = None,
    done: Callable[[], None] = lambda: None,
) -> Verification:
    """Grade recorded answers and try strategies on them.

    Args:
        recorded: Problems with their replies.
        strategies: Ways to choose, by name; ``majority`` is always tried.
        sandbox: Where programs are graded; by default the process's own.
        done: Is called after each problem.

    Raises:
        SandboxError: Programs are to be graded, and there is no sandbox.
        EngineError: An Engine that is asked fails again and again, from the beginning.
    """
    tried = {"majority": by_verifier("vote"), **(strategies or {})}
    slots = asyncio.Semaphore(AT_ONCE)

    failing = _Failing()

    async def one(each: Recorded) -> _Outcome:
        async with slots:
            outcome = await _graded(each, tried, sandbox)
        failing.judge(outcome)
        done()
        return outcome

    outcomes = await gather_ordered(one(each) for each in recorded)
    return _summed_up(recorded, outcomes, tuple(tried))


def by_verifier(strategy: Strategy, settings: Settings | None = None) -> Choose:
    """Choose as the pipeline's own verifier does; all but ``vote`` may ask the Engine that is DSPy's current LM."""
    changes: dict[str, object] = {"verifier": strategy, "written_tests": False, "tasks": {}}
    verifier = Verifier((settings or Settings()).model_copy(update=changes), shared_sandbox())

    async def choose(problem: Problem, attempts: tuple[Attempt, ...]) -> int | None:
        verdict: Verdict = await verifier.acall(problem, attempts)
        return verdict.chosen

    return choose


class _Failing:
    """Ends the work when the Engine has failed again and again and never answered."""

    def __init__(self) -> None:
        self._failed = self._well = 0

    def judge(self, outcome: _Outcome) -> None:
        faults = [(kind, message) for kind, message in outcome.troubles if kind != "budget"]
        self._failed += bool(faults)
        self._well += not outcome.troubles and len(set(outcome.answers)) > 1
        if faults and self._failed >= MANY_FAILURES and not self._well:
            kind, message = faults[-1]
            raise EngineError(
                f"The Engine failed on each of {self._failed} problems, the last time with: {message} "
                "Mend the cause, or leave out --model to grade and vote only.",
                kind=cast("FaultKind", kind),
            )


async def _graded(each: Recorded, strategies: Mapping[str, Choose], sandbox: Sandbox | None) -> _Outcome:
    problem = each.example.problem
    answers = tuple(extract(sample.text, problem.task, problem.choices) for sample in each.samples)
    by_answer = {answer: await agrade(each.example, answer, sandbox=sandbox) for answer in dict.fromkeys(answers)}
    attempts = tuple(map(_attempt, each.samples, answers))
    with noting_troubles() as troubles:
        chosen = {name: await choose(problem, attempts) for name, choose in strategies.items()}
    return _Outcome(
        example=each.example,
        answers=answers,
        grades=tuple(by_answer[answer] for answer in answers),
        chosen=chosen,
        troubles=tuple((trouble.kind, trouble.message) for trouble in troubles),
    )


def _attempt(sample: Sample, answer: str | None) -> Attempt:
    return Attempt(answer=answer, reasoning=sample.text, finish="ok" if answer is not None else "unparsable")


def _summed_up(recorded: Sequence[Recorded], outcomes: Sequence[_Outcome], strategies: tuple[str, ...]) -> Verification:
    scores = [[grade.score for grade in outcome.grades] for outcome in outcomes]
    shares = {
        "pass_at_1": [fmean(each) for each in scores],
        "oracle": [float(max(each) >= 1.0) for each in scores],
        **{name: [outcome.right(name) for outcome in outcomes] for name in strategies},
    }
    differing, labelled = _disagreements(recorded, outcomes)
    troubles = [trouble for outcome in outcomes for trouble in outcome.troubles]
    return Verification(
        n=len(outcomes),
        samples=sum(map(len, scores)),
        pass_at_1=fmean(shares["pass_at_1"]),
        majority=fmean(shares["majority"]),
        oracle=fmean(shares["oracle"]),
        strategies={name: fmean(shares[name]) for name in strategies},
        ci95={name: _interval(scores if name == "pass_at_1" else [[x] for x in each]) for name, each in shares.items()},
        labelled=labelled,
        label_agreement=1 - len(differing) / labelled if labelled else None,
        disagreements=differing,
        troubles=dict(sorted(Counter(kind for kind, _ in troubles).items())),
        trouble=troubles[0][1] if troubles else "",
    )


def _disagreements(recorded: Sequence[Recorded], outcomes: Sequence[_Outcome]) -> tuple[tuple[Disagreement, ...], int]:
    """The samples that are graded otherwise than labelled, and how many have a label."""
    found, labelled = [], 0
    for each, outcome in zip(recorded, outcomes, strict=True):
        for number, (sample, answer, grade) in enumerate(
            zip(each.samples, outcome.answers, outcome.grades, strict=True)
        ):
            if sample.correct is None:
                continue
            labelled += 1
            if sample.correct != grade.correct:
                found.append(
                    Disagreement(
                        id=each.example.id,
                        sample=number,
                        answer=answer,
                        expected=each.example.answer,
                        graded=grade.correct,
                        labelled=sample.correct,
                        feedback=grade.feedback,
                    )
                )
    return tuple(found), labelled


def _interval(scores: Sequence[Sequence[float]]) -> tuple[float, float]:
    estimate = stats.accuracy(scores)
    return estimate.low, estimate.high
