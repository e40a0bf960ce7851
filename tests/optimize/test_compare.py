"""Two runs on the same problems: flips, difference, and how sure we are."""

from __future__ import annotations

from pathlib import Path

import pytest
import scipy.stats

from coda.errors import RunError
from coda.optimize.compare import compare
from coda.optimize.rundir import RunDirectory
from coda.program.types import Problem, Usage


@pytest.fixture
def run_with(tmp_path: Path, attempt, record):
    """Write a run with these answers, by problem: one string, a character for each sample; "4" is right."""

    def write(name: str, **answers: str) -> Path:
        with RunDirectory(tmp_path / name) as run:
            for id, samples in answers.items():
                for sample, answer in enumerate(samples):
                    usage = Usage(calls=1, completion_tokens=10)
                    run.append(record(attempt(answer), id=id, sample=sample, usage=usage))
        return tmp_path / name

    return write


def test_flips_and_p_value(run_with) -> None:
    names = [f"p{n:02}" for n in range(10)]
    before = run_with("a", **dict(zip(names, "5555555544", strict=True)))
    after = run_with("b", **dict(zip(names, "4444444554", strict=True)))
    (result,) = compare(before, after)
    assert result.gained == tuple(names[:7])
    assert result.lost == ("p08",)
    assert (result.before.accuracy.mean, result.after.accuracy.mean) == (0.2, 0.8)
    assert result.paired.difference.mean == pytest.approx(0.6)
    assert result.paired.p == pytest.approx(float(scipy.stats.binomtest(7, 8).pvalue))
    assert result.smallest_visible_gain == pytest.approx(0.6)
    assert (result.before.tokens, result.n) == (10.0, 10)


def test_only_problems_that_both_have_count(run_with) -> None:
    (result,) = compare(run_with("a", p="4", q="4", r="5"), run_with("b", q="5", r="4", s="4", t="4"))
    assert (result.n, result.only_before, result.only_after) == (2, 1, 2)
    assert (result.gained, result.lost) == (("r",), ("q",))


def test_several_samples_are_compared_by_their_mean(run_with) -> None:
    (result,) = compare(run_with("a", p="4455", q="5555"), run_with("b", p="4445", q="5555"))
    assert (result.paired.before, result.paired.after) == (0.25, 0.375)
    assert (result.gained, result.lost) == (("p",), ())


def test_every_other_run_is_compared_with_the_first(run_with) -> None:
    runs = [run_with(name, p=answer) for name, answer in (("a", "5"), ("b", "4"), ("c", "5"))]
    better, same = compare(*runs)
    assert (better.after.run_dir, better.paired.gained) == (runs[1], 1)
    assert (same.after.run_dir, same.paired.gained, same.paired.p) == (runs[2], 0, 1.0)


def test_runs_without_a_common_problem_are_refused(run_with) -> None:
    with pytest.raises(RunError, match="no problem in common"):
        compare(run_with("a", p="4"), run_with("b", q="4"))


def test_an_id_that_stands_for_another_problem_is_refused(run_with, tmp_path: Path, attempt, record) -> None:
    before = run_with("a", p="4")
    with RunDirectory(tmp_path / "b") as run:
        run.append(record(attempt("4"), id="p", problem=Problem(text="What is 3 + 1?")))
    with pytest.raises(RunError, match="Problem p is not the same"):
        compare(before, tmp_path / "b")
