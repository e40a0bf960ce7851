"""Comparing runs problem by problem: is one program better than another, or was it luck?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from coda.errors import RunError
from coda.optimize.records import read_results
from coda.optimize.stats import Estimate, PairedComparison, accuracy, compare_pairs, smallest_visible_gain


@dataclass(frozen=True)
class Side:
    """One run of a comparison, on the problems that both have.

    Attributes:
        run_dir: Where it is.
        accuracy: Its accuracy with its interval.
        tokens: Tokens for each result, on average.
    """

    run_dir: Path
    accuracy: Estimate
    tokens: float


@dataclass(frozen=True)
class Comparison:
    """Two runs on the problems that both have.

    Attributes:
        before: The run compared against.
        after: The run compared with it.
        n: Problems that both have.
        only_before: Problems that only the first has; they do not count.
        only_after: Problems that only the second has; they do not count.
        paired: Difference, interval and p-value.
        gained: Ids of problems on which the second scored higher.
        lost: Ids of problems on which the first scored higher.
        smallest_visible_gain: The smallest difference that so many problems can show at all.
    """

    before: Side
    after: Side
    n: int
    only_before: int
    only_after: int
    paired: PairedComparison
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    smallest_visible_gain: float


@dataclass(frozen=True)
class _Problem:
    key: str
    scores: tuple[float, ...]
    tokens: float


def compare(before: Path, *others: Path, seed: int = 0) -> tuple[Comparison, ...]:
    """Compare runs with a first one, each on the problems that both have. Errors count as wrong.

    Args:
        before: The run directory to compare against.
        *others: The run directories to compare with it.
        seed: Of the bootstrap.

    Raises:
        RunError: A directory has no results, or two runs have no problem in common, or one id stands for different
            problems in them.
    """
    base = _problems(before)
    return tuple(_compared(before, base, after, _problems(after), seed) for after in others)


def _compared(
    before: Path, base: dict[str, _Problem], after: Path, other: dict[str, _Problem], seed: int
) -> Comparison:
    shared = sorted(base.keys() & other.keys())
    if not shared:
        raise RunError(f"{before} and {after} have no problem in common. Compare runs on the same benchmark and split.")
    changed = next((id for id in shared if base[id].key != other[id].key), None)
    if changed is not None:
        raise RunError(f"Problem {changed} is not the same in {before} and {after}: the benchmark has changed.")
    first, second = [base[id] for id in shared], [other[id] for id in shared]
    pairs = [(id, fmean(base[id].scores), fmean(other[id].scores)) for id in shared]
    return Comparison(
        before=_side(before, first),
        after=_side(after, second),
        n=len(shared),
        only_before=len(base) - len(shared),
        only_after=len(other) - len(shared),
        paired=compare_pairs([one for _, one, _ in pairs], [two for _, _, two in pairs], seed=seed),
        gained=tuple(id for id, one, two in pairs if two > one),
        lost=tuple(id for id, one, two in pairs if two < one),
        smallest_visible_gain=smallest_visible_gain(len(shared)),
    )


def _problems(run_dir: Path) -> dict[str, _Problem]:
    found: dict[str, _Problem] = {}
    for record in read_results(run_dir):
        known = found.get(record.id)
        scores = (*(known.scores if known else ()), float(record.correct))
        tokens = record.usage.tokens + (known.tokens if known else 0.0)
        found[record.id] = _Problem(record.problem.key, scores, tokens)
    return found


def _side(run_dir: Path, problems: Sequence[_Problem]) -> Side:
    results = sum(len(problem.scores) for problem in problems)
    return Side(
        run_dir=run_dir,
        accuracy=accuracy([problem.scores for problem in problems]),
        tokens=sum(problem.tokens for problem in problems) / results,
    )
