"""Compile: from a benchmark and an Engine to the pipeline that the budget buys, with the proof that it is better.

Four phases, each measured with the evaluator, so that each resumes with it:

1. *probe*: every adapter style in every mode, on a few training problems (`coda.optimize.calibrate`);
2. *baseline*: the pipeline as the Engine's profile suggests it, on the validation split;
3. *search*: candidates with other demos, made from training problems, on the validation split
   (`coda.optimize.search`);
4. *proof*: the best of them on the test split, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import dspy
from pydantic import BaseModel, ConfigDict, Field

from coda.data.benchmarks import Benchmark, Example
from coda.data.examples import digest_of
from coda.errors import BudgetExceeded
from coda.optimize.calibrate import Cell, Count, best_style, cells, choose, settings_for
from coda.optimize.demos import Demos, labelled, with_demos
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.observers import Observer
from coda.optimize.records import read_results
from coda.optimize.search import Candidate, candidates
from coda.optimize.stats import PairedComparison, compare_pairs
from coda.optimize.summary import Summary
from coda.program.conductor import Coda
from coda.program.engine.budget import Budget, spending
from coda.program.settings import Limits


class CompileConfig(BaseModel):
    """How hard to try."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    probe: int = Field(default=6, ge=1)
    """Training problems for each cell of the calibration grid."""
    candidates: int = Field(default=6, ge=1)
    """Sets of demos to try."""
    zero_shot: bool = True
    """Measure the calibrated program without any demos too."""
    demos: int = Field(default=8, ge=1, le=64)
    """Demos for each predictor."""
    train: int = Field(default=60, ge=1)
    """Training problems that demos are made from."""
    validation: int | None = Field(default=None, ge=1)
    """Validation problems on which candidates are measured; all by default."""
    test: int | None = Field(default=None, ge=1)
    """Test problems for the proof; all by default."""
    concurrency: int = Field(default=16, ge=1)
    """Problems worked on at once."""
    seed: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Splits:
    """A benchmark in its three parts."""

    train: Benchmark
    validation: Benchmark
    test: Benchmark


class CompileWatcher(Protocol):
    """Watches a compilation: a progress display, a tracker."""

    def on_phase(self, phase: str, detail: str) -> None:
        """A phase begins."""

    def measuring(self, name: str, run_dir: Path) -> AbstractContextManager[Observer]:
        """A program is about to be measured under this name; the observer watches it."""
        ...


@dataclass(frozen=True)
class Measured:
    """A program and what it was measured at.

    Attributes:
        name: ``baseline``, or the candidate's name.
        program: The program.
        summary: Its figures.
        scores: Each problem's score, by id.
    """

    name: str
    program: Coda
    summary: Summary
    scores: dict[str, float]


@dataclass(frozen=True)
class Compilation:
    """What compiling came to.

    Attributes:
        best: The chosen program, with its figures on validation.
        baseline: The uncompiled program, on validation.
        gain: Baseline against best, pair by pair on validation.
        test: The best program's figures on the test split.
        grid: What calibration counted.
        measured: All programs that were measured in full on validation, in order.
        stopped: Why it ended early; ``None`` where it did not.
    """

    best: Measured
    baseline: Measured
    gain: PairedComparison
    test: Summary
    grid: dict[Cell, Count]
    measured: tuple[Measured, ...]
    stopped: str | None


class Compiler:
    """Compiles a program for its Engine.

    Args:
        program: The program as it is now; its Engine and sandbox are used.
        splits: The benchmark. Demos are made from the train split alone, candidates are chosen on the validation
            split, and the test split is touched once.
        config: How hard to try.
        run_dir: Where every measurement goes; the same call on the same directory continues.
        watcher: Is told what happens.
    """

    def __init__(
        self, program: Coda, splits: Splits, config: CompileConfig, *, run_dir: Path, watcher: CompileWatcher
    ) -> None:
        self.program = program
        self.engine = program.own_engine
        self.splits = splits
        self.config = config
        self.run_dir = run_dir
        self.watcher = watcher

    def run(self) -> Compilation:
        """Compile.

        Raises:
            BudgetExceeded: The budget ended before even the baseline was measured.
        """
        self.watcher.on_phase("baseline", "the pipeline as it is, on validation")
        baseline = self._on_validation("baseline", self.program)
        if baseline is None:
            raise BudgetExceeded(
                "The budget ended before the baseline was measured on validation. Raise it, or give --validation fewer "
                "problems; the same command goes on."
            )
        measured, grid = [baseline], {}
        search = Budget(self._without_reserve(baseline.summary))
        with spending(search), dspy.context(lm=self.engine.lm):
            self.watcher.on_phase("probe", "which adapter style and which modes work for this Engine")
            grid = self._probe()
            settings = choose(self.program.settings, grid) if grid else self.program.settings
            calibrated = self.program.with_settings(settings)
            self.watcher.on_phase("search", f"{self.config.candidates} sets of demos, on validation")
            measured += [found for found in self._search(calibrated) if found is not None]
        best = max(measured, key=lambda each: (each.summary.score, -each.summary.tokens))
        self.watcher.on_phase("proof", f"{best.name} on the test split, once")
        test = self._measure("test", best.program, self.splits.test, self.config.test)
        return Compilation(
            best=best,
            baseline=baseline,
            gain=self._gain(baseline, best),
            test=test,
            grid=grid,
            measured=tuple(measured),
            stopped=test.stopped.message if test.stopped is not None else self._stopped(search, measured),
        )

    def _probe(self) -> dict[Cell, Count]:
        """Count successes for each adapter style and mode, with labelled demos where the benchmark has some.

        A few problems tell the styles apart. The modes of the best style then get three times as many more, since the
        order of the paths hangs on them.
        """
        demos = labelled(self._train().examples, self.config.demos, self.config.seed)
        shown = {str(demo.problem) for each in demos.values() for demo in each}
        unseen = tuple(each for each in self._train().examples if each.problem.text.strip() not in shown)
        few, more = unseen[: self.config.probe], unseen[self.config.probe : 4 * self.config.probe]
        modes = self.program.modes(few[0].problem)
        grid: dict[Cell, Count] = {}
        for cell in cells(self.program.settings, modes):
            if (found := self._count(f"probe-{'-'.join(cell)}", cell, demos, few)) is None:
                return grid
            grid[cell] = found
        for cell in [(best_style(grid), mode) for mode in modes] if more else []:
            if (found := self._count(f"probe-more-{'-'.join(cell)}", cell, demos, more)) is None:
                return grid
            grid[cell] += found
        return grid

    def _count(self, name: str, cell: Cell, demos: Demos, examples: tuple[Example, ...]) -> Count | None:
        """Count one cell's successes; ``None`` where the budget ended before all problems were asked."""
        program = with_demos(self.program.with_settings(settings_for(self.program.settings, cell)), demos)
        probed = self.splits.train.model_copy(update={"examples": examples, "digest": digest_of(examples)})
        summary = self._measure(name, program, probed, None)
        if summary.stopped is not None:
            return None
        records = read_results(self.run_dir / name)
        readable = sum(attempt.finish == "ok" for record in records for attempt in record.attempts)
        return Count(round(summary.accuracy * summary.n), summary.n, readable)

    def _search(self, program: Coda) -> Iterator[Measured | None]:
        """Measure the calibrated program with each candidate's demos."""
        if self.config.zero_shot:
            yield self._on_validation("calibrated", program)
        for candidate in self._candidates(program):
            yield self._on_validation(candidate.name, with_demos(program, candidate.demos))

    def _candidates(self, program: Coda) -> Iterator[Candidate]:
        config = self.config
        train = self._train().examples
        return candidates(program, train, count=config.candidates, k=config.demos, seed=config.seed)

    def _train(self) -> Benchmark:
        return self.splits.train.model_copy(update={"examples": self.splits.train.examples[: self.config.train]})

    def _on_validation(self, name: str, program: Coda) -> Measured | None:
        """Measure on validation; ``None`` where the budget ended before all problems were measured."""
        summary = self._measure(name, program, self.splits.validation, self.config.validation)
        if summary.stopped is not None:
            return None
        scores = {record.id: record.score for record in read_results(self.run_dir / name)}
        return Measured(name, program, summary, scores)

    def _measure(self, name: str, program: Coda, benchmark: Benchmark, limit: int | None) -> Summary:
        run_dir = self.run_dir / name
        config = EvaluationConfig(limit=limit, concurrency=self.config.concurrency, max_error_rate=1.0)
        with self.watcher.measuring(name, run_dir) as observer:
            return evaluate(program, benchmark, config, run_dir=run_dir, observer=observer)

    def _without_reserve(self, baseline: Summary) -> Limits:
        """What the search may spend: the run's limits less twice what the test split costs at the baseline's rate."""
        problems = min(self.config.test or len(self.splits.test.examples), len(self.splits.test.examples))
        share = 2 * problems / max(1, baseline.n)
        limits, spent = self.engine.config.limits, self.engine.budget.usage
        left_calls = None if limits.max_calls is None else limits.max_calls - spent.calls - share * baseline.calls
        left_tokens = None if limits.max_tokens is None else limits.max_tokens - spent.tokens - share * baseline.tokens
        return Limits(
            max_calls=None if left_calls is None else max(1, int(left_calls)),
            max_tokens=None if left_tokens is None else max(1, int(left_tokens)),
        )

    def _stopped(self, search: Budget, measured: list[Measured]) -> str | None:
        expected = self.config.candidates + 1 + self.config.zero_shot
        if len(measured) == expected:
            return None
        return (
            f"The budget ended the search after {search.usage.calls} requests, with {len(measured)} of {expected} "
            "programs measured; the best of them was kept."
        )

    def _gain(self, baseline: Measured, best: Measured) -> PairedComparison:
        ids = [key for key in baseline.scores if key in best.scores]
        return compare_pairs([baseline.scores[key] for key in ids], [best.scores[key] for key in ids])
