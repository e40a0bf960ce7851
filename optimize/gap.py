"""The gap report: how far a single attempt is from the final answer, and where each wrong problem was lost.

    single     the first path's attempt is right
    oracle     some attempt is right: no verifier can do better
    majority   the most frequent answer of the paths is right, before reflection
    verified   the attempt that the verifier chose is right
    final      the answer that the pipeline gave is right

Each is a share of all problems and samples; ones that ended in an error count as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import get_args

from coda.optimize.findings import Finding, Loss
from coda.program.types import Frozen

EFFORT_POINTS = 10


class EarlyExit(Frozen):
    """How often the attempts agreed, so that nothing more was spent, and how often they were right then."""

    rate: float
    precision: float | None
    """``None`` where there was no early exit."""


class PlannerYield(Frozen):
    """What plans were worth."""

    engine: int
    """Plans that the Engine devised."""
    default: int
    """Default plans, planning being off or having failed."""
    coverage: float
    """Share of problems in which a path led to a right answer."""
    distinct_answers: float
    """Distinct answers for each problem, on average: how much the paths differ in effect."""


class ModeYield(Frozen):
    """What the paths of one mode were worth."""

    attempts: int
    right: int
    no_answer: int


class ReflectorYield(Frozen):
    """What reflection was worth, against the paths' majority."""

    ran: int
    right: int
    fixed: int
    """The majority was wrong, the reflector right."""
    broken: int
    """The majority was right, the reflector wrong."""


class VerifierYield(Frozen):
    """How well the verifier chose."""

    selectable: int
    """Problems with a right attempt."""
    chosen: int
    """Of those, where it chose a right one."""
    contested: int
    """Of those, where another attempt had a wrong answer."""
    contested_chosen: int
    """Of the contested, where it chose a right one."""


class RefinementRound(Frozen):
    """What one round of correction was worth."""

    round: int
    tried: int
    fixed: int
    """Wrong before, right after."""
    broken: int
    """Right before, wrong after."""


class EffortPoint(Frozen):
    """So large a share of all problems was solved for at most so many tokens each."""

    tokens: int
    solved: float


class GapReport(Frozen):
    """From a single attempt to the final answer, in shares of all problems and samples."""

    n: int
    single: float
    oracle: float
    majority: float
    verified: float
    final: float
    lost: dict[Loss, int]
    """Wrong problems by where they were lost; they add up to all wrong ones."""
    early_exit: EarlyExit
    planner: PlannerYield
    executor: dict[str, ModeYield]
    """By mode."""
    programs: dict[str, int]
    """Runs of programs by their outcome, those that were corrected later included."""
    refinement: tuple[RefinementRound, ...]
    reflector: ReflectorYield
    verifier: VerifierYield
    effort: tuple[EffortPoint, ...]
    """Accuracy against tokens."""


def gap_report(findings: Sequence[Finding]) -> GapReport:
    """Count over all problems and samples; at least one."""

    def share(of: Callable[[Finding], bool]) -> float:
        return fmean(of(each) for each in findings)

    exits = [each.final for each in findings if each.early_exit]
    lost = Counter(each.loss for each in findings if each.loss is not None)
    return GapReport(
        n=len(findings),
        single=share(lambda f: f.single),
        oracle=share(lambda f: f.oracle),
        majority=share(lambda f: f.majority),
        verified=share(lambda f: f.verified),
        final=share(lambda f: f.final),
        lost={loss: lost[loss] for loss in get_args(Loss) if lost[loss]},
        early_exit=EarlyExit(rate=len(exits) / len(findings), precision=fmean(exits) if exits else None),
        planner=PlannerYield(
            engine=sum(f.planned for f in findings),
            default=sum(not f.planned for f in findings),
            coverage=share(lambda f: f.covered),
            distinct_answers=fmean(f.distinct_answers for f in findings),
        ),
        executor=_modes(findings),
        programs=dict(sorted(Counter(outcome for f in findings for outcome in f.programs).items())),
        refinement=_refinement(findings),
        reflector=_reflector(findings),
        verifier=_verifier(findings),
        effort=_effort(findings),
    )


def _modes(findings: Iterable[Finding]) -> dict[str, ModeYield]:
    attempts: dict[str, list[tuple[bool, bool]]] = {}
    for each in findings:
        for mode, answered, right in each.modes:
            attempts.setdefault(mode, []).append((answered, right))
    return {
        mode: ModeYield(
            attempts=len(seen),
            right=sum(right for _, right in seen),
            no_answer=sum(not answered for answered, _ in seen),
        )
        for mode, seen in sorted(attempts.items())
    }


def _refinement(findings: Iterable[Finding]) -> tuple[RefinementRound, ...]:
    rounds: dict[int, list[tuple[bool, bool]]] = {}
    for each in findings:
        for number, before, after in each.rounds:
            rounds.setdefault(number, []).append((before, after))
    return tuple(
        RefinementRound(
            round=number,
            tried=len(pairs),
            fixed=sum(after and not before for before, after in pairs),
            broken=sum(before and not after for before, after in pairs),
        )
        for number, pairs in sorted(rounds.items())
    )


def _reflector(findings: Iterable[Finding]) -> ReflectorYield:
    ran = [(each.majority, each.reflection) for each in findings if each.reflection is not None]
    return ReflectorYield(
        ran=len(ran),
        right=sum(right for _, right in ran),
        fixed=sum(right and not before for before, right in ran),
        broken=sum(before and not right for before, right in ran),
    )


def _verifier(findings: Iterable[Finding]) -> VerifierYield:
    selectable = [each for each in findings if each.oracle]
    contested = [each for each in selectable if each.contested]
    return VerifierYield(
        selectable=len(selectable),
        chosen=sum(each.verified for each in selectable),
        contested=len(contested),
        contested_chosen=sum(each.verified for each in contested),
    )


def _effort(findings: Sequence[Finding]) -> tuple[EffortPoint, ...]:
    """The share of all problems solved for at most so many tokens, at up to `EFFORT_POINTS` quantiles of the tokens."""
    spent = sorted(each.tokens for each in findings)
    places = {(len(spent) * step - 1) // EFFORT_POINTS for step in range(1, EFFORT_POINTS + 1)}
    caps = sorted({spent[max(0, place)] for place in places})
    solved = sorted(each.tokens for each in findings if each.final)
    return tuple(
        EffortPoint(tokens=cap, solved=sum(tokens <= cap for tokens in solved) / len(findings)) for cap in caps
    )
