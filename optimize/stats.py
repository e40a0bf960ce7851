"""The statistics behind every figure: intervals, paired tests, and estimates from several samples of a problem.

Scores are numbers from 0 to 1. Intervals are two-sided and, unless ``level`` says otherwise, 95 % intervals.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

LEVEL = 0.95
SIGNIFICANT = 0.05

RESAMPLES = 10_000
"""Bootstrap resamples: the interval's ends then vary by about 1 % of its width from seed to seed."""

SUBSETS = 2_000
"""Subsets of samples that `maj_at_k` looks at where there are more."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval.

    Attributes:
        mean: The point estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        n: How many independent units (problems) it rests on.
    """

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class PairedComparison:
    """Two programs on the same problems.

    Attributes:
        before: The first program's mean score.
        after: The second program's mean score.
        difference: The second minus the first, with its bootstrap interval over problems.
        gained: Problems on which the second scored higher.
        lost: Problems on which the first scored higher.
        p: McNemar's exact two-sided p-value; with several samples per problem it is the sign test on their means.
    """

    before: float
    after: float
    difference: Estimate
    gained: int
    lost: int
    p: float

    @property
    def proven(self) -> bool:
        """Whether the second is better beyond doubt: the interval lies above 0, and p is below 0.05."""
        return proven_gain(self.difference.low, self.p)


def proven_gain(low: float, p: float) -> bool:
    """Whether a difference is a gain beyond doubt: its interval begins above 0, and its p-value below `SIGNIFICANT`."""
    return low > 0 and p < SIGNIFICANT


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """The score interval of a proportion (Wilson, JASA 22, 1927); sound for small ``n`` and near 0 and 1.

    Args:
        successes: How many of ``n`` were right; may be fractional where ``n`` is an effective number.
        n: How many there were, above 0.
        level: The confidence level.
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def clustered_error(scores: Sequence[Sequence[float]]) -> float:
    """The standard error of the mean over all samples, clustered by problem.

    Samples of one problem resemble each other, so that they count for less than as many problems would (Liang and
    Zeger, Biometrika 73, 1986; for evaluations of language models: Miller, arXiv:2411.00640). With the usual
    correction for few clusters, G / (G - 1).

    Args:
        scores: For each problem, the scores of its samples; at least two problems.
    """
    total = sum(len(group) for group in scores)
    mean = math.fsum(score for group in scores for score in group) / total
    squares = math.fsum(math.fsum(score - mean for score in group) ** 2 for group in scores)
    return math.sqrt(squares * len(scores) / (len(scores) - 1)) / total


def accuracy(scores: Sequence[Sequence[float]], level: float = LEVEL) -> Estimate:
    """The mean score over all samples, with an interval that respects that samples of one problem go together.

    Wilson's interval at the effective number of independent samples, p(1 - p) / se² with the clustered standard error
    (Korn and Graubard, Survey Methodology 24, 1998). One sample per problem that is right or wrong gives the
    plain Wilson interval; where all scores are equal, and the error therefore unknown, each problem counts once.

    Args:
        scores: For each problem, the scores of its samples.
        level: The confidence level.
    """
    problems = len(scores)
    flat = [score for group in scores for score in group]
    mean = fmean(flat)
    if all(len(group) == 1 for group in scores) and all(score in (0.0, 1.0) for score in flat):
        return Estimate(mean, *wilson(sum(flat), problems, level), problems)
    error = clustered_error(scores) if problems > 1 else 0.0
    effective = mean * (1 - mean) / error**2 if error > 0 else float(problems)
    effective = max(1.0, min(effective, float(len(flat))))
    return Estimate(mean, *wilson(mean * effective, effective, level), problems)


def bootstrap(values: Sequence[float], *, seed: int = 0, level: float = LEVEL, resamples: int = RESAMPLES) -> Estimate:
    """The mean with its percentile bootstrap interval (Efron and Tibshirani, 1993, chapter 13).

    Args:
        values: One value for each problem; for several samples, their mean.
        seed: The same seed gives the same interval.
        level: The confidence level.
        resamples: How many resamples are drawn.
    """
    import numpy as np

    data = np.asarray(values, dtype=float)
    generator = np.random.default_rng(seed)
    block = max(1, 4_000_000 // max(1, len(data)))
    means = np.concatenate(
        [
            data[generator.integers(0, len(data), (min(block, resamples - start), len(data)))].mean(axis=1)
            for start in range(0, resamples, block)
        ]
    )
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return Estimate(float(data.mean()), float(low), float(high), len(data))


def compare_pairs(before: Sequence[float], after: Sequence[float], *, seed: int = 0) -> PairedComparison:
    """Compare two programs problem by problem.

    Args:
        before: The first program's score for each problem; for several samples, their mean.
        after: The second program's, for the same problems in the same order.
        seed: Of the bootstrap; the same seed gives the same interval.
    """
    pairs = list(zip(before, after, strict=True))
    gained = sum(b > a for a, b in pairs)
    lost = sum(b < a for a, b in pairs)
    difference = bootstrap([b - a for a, b in pairs], seed=seed)
    return PairedComparison(fmean(before), fmean(after), difference, gained, lost, mcnemar(gained, lost))


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p-value of McNemar's test (binomial; McNemar, Psychometrika 12, 1947).

    Args:
        gained: Problems that only the second program solves.
        lost: Problems that only the first program solves.
    """
    if gained + lost == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(gained, gained + lost, 0.5).pvalue)


def pass_at_k(n: int, right: int, k: int) -> float:
    """The probability that one of ``k`` samples is right, unbiased from ``n`` samples (Chen et al., arXiv:2107.03374).

    Args:
        n: Samples that were drawn.
        right: How many of them are right.
        k: From 1 to ``n``.
    """
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def maj_at_k(classes: Sequence[int | None], right: Sequence[bool], k: int, *, seed: int = 0) -> float:
    """The probability that the most frequent of ``k`` answers is right, averaged over subsets of the samples.

    All subsets are taken where there are at most `SUBSETS`, else so many are drawn. Answers that are equally frequent
    share the vote.

    Args:
        classes: For each sample, the class of its answer (equal answers, equal class); ``None`` where it has none.
        right: For each sample, whether it is right.
        k: From 1 to the number of samples.
        seed: Which subsets are drawn.
    """
    indices = range(len(classes))
    if math.comb(len(classes), k) <= SUBSETS:
        subsets: list[tuple[int, ...]] = list(itertools.combinations(indices, k))
    else:
        generator = random.Random(seed)
        subsets = [tuple(generator.sample(indices, k)) for _ in range(SUBSETS)]
    return fmean(_vote([classes[i] for i in subset], [right[i] for i in subset]) for subset in subsets)


def _vote(classes: Sequence[int | None], right: Sequence[bool]) -> float:
    """The share of the winning classes that are right."""
    votes: dict[int, int] = {}
    truth: dict[int, bool] = {}
    for name, is_right in zip(classes, right, strict=True):
        if name is not None:
            votes[name] = votes.get(name, 0) + 1
            truth[name] = truth.get(name, False) or is_right
    if not votes:
        return 0.0
    winners = [name for name, count in votes.items() if count == max(votes.values())]
    return fmean(float(truth[name]) for name in winners)


def smallest_visible_gain(n: int, level: float = LEVEL) -> float:
    """The smallest paired difference that ``n`` problems can show at all, from 0 to 1.

    The exact McNemar test cannot reach significance with fewer than six problems that all flip the same way (at 95 %),
    so a smaller difference than six problems in ``n`` cannot be told from chance, whatever it is.
    """
    flips = math.ceil(1 - math.log2(1 - level))
    return min(1.0, flips / n)
