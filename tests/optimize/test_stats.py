"""The statistics agree with scipy, with brute force, and with what they promise over many simulated runs."""

from __future__ import annotations

import itertools
import math
import random
from statistics import fmean

import numpy as np
import pytest
import scipy.stats

from coda.optimize import stats


@pytest.mark.parametrize(("right", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (57, 60), (137, 200)])
def test_wilson_is_scipys(right: int, n: int) -> None:
    expected = scipy.stats.binomtest(right, n).proportion_ci(method="wilson")
    assert stats.wilson(right, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_at_another_level() -> None:
    expected = scipy.stats.binomtest(7, 20).proportion_ci(confidence_level=0.8, method="wilson")
    assert stats.wilson(7, 20, level=0.8) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_one_sample_per_problem_gives_the_plain_wilson_interval() -> None:
    estimate = stats.accuracy([[1.0]] * 7 + [[0.0]] * 3)
    assert (estimate.mean, estimate.n) == (0.7, 10)
    assert (estimate.low, estimate.high) == stats.wilson(7, 10)


def test_samples_that_repeat_each_other_are_worth_one() -> None:
    once = [[1.0]] * 30 + [[0.0]] * 10
    fourfold = [group * 4 for group in once]
    single, repeated = stats.accuracy(once), stats.accuracy(fourfold)
    assert repeated.mean == single.mean
    assert repeated.low == pytest.approx(single.low, abs=0.004)  # G / (G - 1) is the difference
    assert repeated.high == pytest.approx(single.high, abs=0.004)


def test_independent_samples_are_worth_more_than_one() -> None:
    generator = random.Random(1)
    scores = [[float(generator.random() < 0.5) for _ in range(4)] for _ in range(50)]
    one, four = stats.accuracy([group[:1] for group in scores]), stats.accuracy(scores)
    assert four.high - four.low < 0.62 * (one.high - one.low)


def test_equal_scores_count_each_problem_once() -> None:
    estimate = stats.accuracy([[1.0, 1.0]] * 10)
    assert (estimate.low, estimate.high) == stats.wilson(10, 10)


def test_a_single_problem_has_a_wide_interval() -> None:
    estimate = stats.accuracy([[1.0, 0.0, 1.0]])
    assert estimate.n == 1
    assert estimate.high - estimate.low > 0.7


def test_clustered_error_of_single_samples_is_the_standard_error() -> None:
    values = [0.1, 0.9, 0.4, 1.0, 0.0, 0.7]
    expected = float(scipy.stats.sem(values))
    assert stats.clustered_error([[value] for value in values]) == pytest.approx(expected)


def test_clustered_error_of_equal_clusters_is_the_standard_error_of_their_means() -> None:
    generator = np.random.default_rng(3)
    scores = generator.random((12, 5))
    expected = float(scipy.stats.sem(scores.mean(axis=1)))
    assert stats.clustered_error(scores.tolist()) == pytest.approx(expected)


def test_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(0).beta(2, 1, 40)
    ours = stats.bootstrap(values.tolist(), seed=1)
    theirs = scipy.stats.bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=2)
    assert ours.mean == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.005)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.005)


def test_bootstrap_is_the_same_for_the_same_seed_however_it_is_chunked() -> None:
    values = [float(i % 3 == 0) for i in range(3_000)]
    assert stats.bootstrap(values, seed=5, resamples=3_000) == stats.bootstrap(values, seed=5, resamples=3_000)
    assert stats.bootstrap(values, seed=5, resamples=3_000) != stats.bootstrap(values, seed=6, resamples=3_000)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (6, 0), (5, 1), (10, 10), (25, 9)])
def test_mcnemar_is_the_exact_binomial_by_brute_force(gained: int, lost: int) -> None:
    n = gained + lost
    tail = sum(math.comb(n, k) for k in range(min(gained, lost) + 1)) / 2**n
    assert stats.mcnemar(gained, lost) == pytest.approx(min(1.0, 2 * tail))


def test_compare_pairs_counts_flips_and_says_how_sure() -> None:
    before = [0.0] * 12 + [1.0] * 8
    after = [1.0] * 9 + [0.0] * 3 + [1.0] * 7 + [0.0]
    result = stats.compare_pairs(before, after)
    assert (result.before, result.after) == (0.4, 0.8)
    assert (result.gained, result.lost) == (9, 1)
    assert result.difference.mean == pytest.approx(0.4)
    assert result.p == pytest.approx(float(scipy.stats.binomtest(9, 10).pvalue))
    assert 0 < result.difference.low < 0.4 < result.difference.high


def test_compare_pairs_refuses_lists_of_unequal_length() -> None:
    with pytest.raises(ValueError):
        stats.compare_pairs([1.0], [1.0, 0.0])


@pytest.mark.parametrize(("n", "right", "k"), [(4, 0, 2), (4, 1, 2), (6, 2, 3), (8, 3, 8), (5, 5, 1)])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(n: int, right: int, k: int) -> None:
    samples = [1] * right + [0] * (n - right)
    subsets = list(itertools.combinations(samples, k))
    assert stats.pass_at_k(n, right, k) == pytest.approx(fmean(any(subset) for subset in subsets))


def test_majority_of_all_samples() -> None:
    assert stats.maj_at_k([0, 0, 1], [True, True, False], 3) == 1.0
    assert stats.maj_at_k([0, 1, 1], [True, False, False], 3) == 0.0


def test_tied_answers_share_the_vote() -> None:
    assert stats.maj_at_k([0, 0, 1, 1], [True, True, False, False], 4) == 0.5


def test_samples_without_an_answer_have_no_vote() -> None:
    assert stats.maj_at_k([None, None, 0], [False, False, True], 3) == 1.0
    assert stats.maj_at_k([None, None], [False, False], 2) == 0.0


def test_majority_of_one_is_the_mean_of_the_samples() -> None:
    assert stats.maj_at_k([0, 1, 1, None], [True, False, False, False], 1) == 0.25


def test_majority_of_three_of_five_by_hand() -> None:
    # Three right, two equal wrong ones: of ten triples, those with both wrong ones (three) are lost.
    assert stats.maj_at_k([0, 0, 0, 1, 1], [True, True, True, False, False], 3) == pytest.approx(0.7)


def test_majority_of_many_subsets_is_drawn_with_a_seed() -> None:
    classes, right = [0] * 20 + [1] * 12, [True] * 20 + [False] * 12
    first = stats.maj_at_k(classes, right, 9, seed=1)
    assert first == stats.maj_at_k(classes, right, 9, seed=1)
    exact = sum(scipy.stats.hypergeom(32, 20, 9).pmf(k) for k in range(5, 10))
    assert first == pytest.approx(exact, abs=0.03)


def test_thirty_problems_cannot_show_less_than_twenty_points() -> None:
    assert stats.smallest_visible_gain(30) == pytest.approx(0.2)
    assert stats.mcnemar(6, 0) < 0.05 < stats.mcnemar(5, 0)
    assert stats.smallest_visible_gain(3) == 1.0


def test_the_interval_covers_the_truth_for_single_samples() -> None:
    generator = np.random.default_rng(11)
    for truth in (0.1, 0.5, 0.9):
        hits = [_covers([[float(x)] for x in generator.random(60) < truth], truth) for _ in range(600)]
        assert 0.92 <= fmean(hits) <= 0.985


def test_the_interval_covers_the_truth_for_clustered_samples_and_the_naive_one_does_not() -> None:
    generator = np.random.default_rng(12)
    hits, naive = [], []
    for _ in range(500):
        skill = generator.beta(0.6, 0.4, 50)  # problems differ much: mean 0.6, samples of one alike
        scores = (generator.random((50, 8)) < skill[:, None]).astype(float)
        hits.append(_covers(scores.tolist(), 0.6))
        low, high = stats.wilson(scores.sum(), scores.size)
        naive.append(low <= 0.6 <= high)
    assert 0.92 <= fmean(hits) <= 0.985
    assert fmean(naive) < 0.75


def test_the_bootstrap_interval_of_a_difference_covers_the_truth() -> None:
    generator = np.random.default_rng(13)
    hits = []
    for _ in range(300):
        before, after = generator.random(80) < 0.5, generator.random(80) < 0.7
        result = stats.compare_pairs(before.astype(float).tolist(), after.astype(float).tolist())
        hits.append(result.difference.low <= 0.2 <= result.difference.high)
    assert 0.91 <= fmean(hits) <= 0.985


def _covers(scores: list[list[float]], truth: float) -> bool:
    estimate = stats.accuracy(scores)
    return estimate.low <= truth <= estimate.high
