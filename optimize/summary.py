"""The figures of a run, and how they add up from its records one by one.

The names of the fields are promises: ``summary.json``, ``--json`` and MLflow's metrics use them (docs/records.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Literal

from coda.optimize import stats
from coda.optimize.findings import Finding, finding
from coda.optimize.gap import GapReport, gap_report
from coda.optimize.records import Key, Record
from coda.optimize.rundir import read_document
from coda.program.types import Frozen, Usage


class Stop(Frozen):
    """Why a run ended before all problems had an answer. The same command goes on."""

    reason: Literal["budget", "errors", "interrupted"]
    message: str


class Facts(Frozen):
    """What a summary says that is not in the records."""

    benchmark: str
    split: str
    digest: str
    """Of the benchmark's content."""
    model: str
    program: str
    """What was measured: ``Coda``, or a baseline's name."""
    sandbox: str
    """The isolation that programs ran in."""
    planned: int
    """Results that a whole run has."""
    seconds: float
    """Wall-clock time of all commands that worked on this run, those that were killed excepted."""
    unfinished: Usage = Usage()
    """What was paid for problems that then had no result, by commands that ended in order; part of the totals."""
    stopped: Stop | None = None


class Beside(Frozen):
    """A baseline that was measured beside a program, on the same problems (`coda.experiments.equal_tokens`)."""

    baseline: str
    samples: float
    """Answers to each problem that it drew."""
    run_dir: str
    """Where it is, seen from the program's run directory."""
    n: int
    """Results."""
    accuracy: float
    ci95: tuple[float, float]
    tokens_each: float
    """What its replies are worth for each result, those included that came from the cache."""
    own_tokens_each: float
    """The same of the program."""
    calls: int
    tokens: int
    """What was paid for it; samples that another baseline had drawn cost nothing."""
    gain: float
    """The program's accuracy minus the baseline's, over the problems that both have."""
    gain_ci95: tuple[float, float]
    gained: int
    """Problems on which the program scored higher."""
    lost: int
    """Problems on which the baseline did."""
    p: float
    """McNemar's exact two-sided p-value."""


class Summary(Facts):
    """What a run measured."""

    version: int = 1
    """Of this document's shape."""
    n: int
    """Results: problems times samples, as far as the run came."""
    problems: int
    """Problems with a result."""
    samples: int
    """Samples of each problem."""
    accuracy: float
    """The share of results that are right (avg@k for k samples); errors count as wrong."""
    ci95: tuple[float, float]
    """Its 95 % interval; see `coda.optimize.stats.accuracy`."""
    se: float | None = None
    """Its standard error, clustered by problem; ``None`` for fewer than two problems."""
    score: float
    """The mean of the grader's scores; equal to ``accuracy`` where it gives no partial credit."""
    pass_at: dict[int, float]
    """pass@k by k, unbiased; empty for a single sample."""
    maj_at: dict[int, float]
    """maj@k by k; empty for a single sample."""
    calls: int
    tokens: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached: int
    stages: dict[str, Usage]
    """What each stage's requests cost, over all results."""
    early_exit: float
    """The share of results for which the attempts agreed, so that nothing more was spent."""
    errors: dict[str, int]
    """Results without an answer, by the kind of error."""
    smallest_visible_gain: float
    """The smallest paired difference that so many problems can show at all."""
    gap: GapReport | None
    """``None`` where there are no results."""
    beside: tuple[Beside, ...] = ()
    """Baselines that were measured beside it, by the last command."""


class Tally:
    """Adds up records one by one, in memory that does not grow with what a record holds.

    Args:
        samples: Samples of each problem; their answers are kept for maj@k where there are several.
    """

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.errors: dict[Key, str] = {}
        self.findings: dict[Key, Finding] = {}
        self._usage = Usage()
        self._stages: dict[str, Usage] = {}
        self.answers: dict[str, dict[int, str | None]] = {}
        """Final answers by problem and sample; empty for a single sample."""

    def add(self, record: Record) -> None:
        """Add a record; a later one with the same key replaces the earlier, whose cost still counts."""
        self.findings[record.key] = finding(record)
        self.errors.pop(record.key, None)
        if record.error is not None:
            self.errors[record.key] = record.error.kind
        self._usage += record.usage
        for stage, usage in record.stages.items():
            self._stages[stage] = self._stages.get(stage, Usage()) + usage
        if self.samples > 1:
            self.answers.setdefault(record.id, {})[record.sample] = record.answer

    def summary(self, facts: Facts, classes: Mapping[Key, int]) -> Summary:
        """Sum up.

        Args:
            facts: What the records do not say.
            classes: For maj@k, the class of each answer: equal for equivalent answers to a problem.
        """
        usage = self._usage + facts.unfinished
        findings = [found for _, found in sorted(self.findings.items())]
        groups = _by_problem(findings)
        right = [[float(each.final) for each in group] for group in groups]
        estimate = stats.accuracy(right) if findings else stats.Estimate(0.0, 0.0, 1.0, 0)
        return Summary(
            **dict(facts),
            n=len(findings),
            problems=len(groups),
            samples=self.samples,
            accuracy=estimate.mean,
            ci95=(estimate.low, estimate.high),
            se=stats.clustered_error(right) if len(right) > 1 else None,
            score=fmean(each.score for each in findings) if findings else 0.0,
            pass_at=_pass_at(groups, self.samples),
            maj_at=_maj_at(groups, self.samples, classes),
            tokens=usage.tokens,
            **usage.model_dump(),
            stages=dict(sorted(self._stages.items())),
            early_exit=fmean(each.early_exit for each in findings) if findings else 0.0,
            errors=dict(sorted(Counter(self.errors.values()).items())),
            smallest_visible_gain=stats.smallest_visible_gain(max(1, len(groups))),
            gap=gap_report(findings) if findings else None,
        )


def _by_problem(findings: Iterable[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for each in findings:
        groups.setdefault(each.key[0], []).append(each)
    return list(groups.values())


def _pass_at(groups: Iterable[list[Finding]], samples: int) -> dict[int, float]:
    values: dict[int, list[float]] = {k: [] for k in _ks(samples)}
    for group in groups:
        for k in values:
            if k <= len(group):
                values[k].append(stats.pass_at_k(len(group), sum(each.final for each in group), k))
    return {k: fmean(found) for k, found in values.items() if found}


def _maj_at(groups: Iterable[list[Finding]], samples: int, classes: Mapping[Key, int]) -> dict[int, float]:
    values: dict[int, list[float]] = {k: [] for k in _ks(samples)}
    for group in groups:
        labels = [classes.get(each.key) for each in group]
        for k in values:
            if k <= len(group):
                values[k].append(stats.maj_at_k(labels, [each.final for each in group], k))
    return {k: fmean(found) for k, found in values.items() if found}


def _ks(samples: int) -> list[int]:
    """1, 2, 4, … and the number of samples; none for a single sample, whose pass@1 is the accuracy."""
    if samples == 1:
        return []
    return sorted({2**power for power in range(samples.bit_length()) if 2**power <= samples} | {samples})


def read_summary(run_dir: Path) -> Summary:
    """The summary of a run.

    Raises:
        RunError: There is none, or it cannot be read.
    """
    return Summary.model_validate(read_document(run_dir / "summary.json"))
