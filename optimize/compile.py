"""Compile: from a benchmark and an Engine to the pipeline that the budget buys, with the proof that it is better.

Four phases, each measured with the evaluator, so that each resumes with it:

1. *probe*: every adapter style in every mode, on a few training problems (`coda.optimize.calibrate`);
2. *baseline*: the pipeline as the Engine's profile suggests it, on the validation split;
3. *search*: candidates with other demos and instructions, made from training problems by an optimizer
   (`coda.optimize.optimizers`), on the validation split;
4. *proof*: the best of them and the baseline on the test split, once, pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import dspy

from coda.data.benchmarks import Benchmark, Example
from coda.data.examples import digest_of
from coda.errors import BudgetExceeded, EngineError
from coda.optimize.calibrate import Cell, Count, best_style, cells, choose, probed, settings_for
from coda.optimize.config import CompileConfig
from coda.optimize.demos import Demos, labelled, with_demos
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.guards import Guards
from coda.optimize.helpers import Helpers, helping
from coda.optimize.measures import StageMeasures, measures
from coda.optimize.observers import Observer
from coda.optimize.optimizers import Workbench, check_optimizer, optimizer
from coda.optimize.records import Fault, read_results
from coda.optimize.stats import PairedComparison, compare_pairs
from coda.optimize.summary import Summary
from coda.program.conductor import Coda
from coda.program.engine.budget import Budget, spending
from coda.program.settings import Limits
from coda.program.types import Usage

__all__ = ["Compilation", "CompileConfig", "CompileWatcher", "Compiler", "Measured", "Splits"]


PROBE_DEMOS = 4
"""Demos that tell whether an Engine keeps to a style; more make each request of the probe slower, and no clearer."""


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
        stages: What each stage did.
    """

    name: str
    program: Coda
    summary: Summary
    scores: dict[str, float]
    stages: StageMeasures


@dataclass(frozen=True)
class Compilation:
    """What compiling came to.

    Attributes:
        best: The chosen program, with its figures on validation.
        baseline: The uncompiled program, on validation.
        gain: Baseline against best, pair by pair on validation.
        test: The best program's figures on the test split.
        proof: Baseline against best, pair by pair on the test split; ``None`` where the baseline itself is the best, or
            the budget ended before both were measured.
        grid: What calibration counted.
        measured: All programs that were measured in full on validation, in order.
        stopped: Why it ended early; ``None`` where it did not.
    """

    best: Measured
    baseline: Measured
    gain: PairedComparison
    test: Summary
    proof: PairedComparison | None
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

    Raises:
        UsageError: The optimizer cannot run here, or with these problems; nothing was spent.
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
        check_optimizer(config, splits.train.examples)
        self.guards = Guards(splits.train, (splits.validation, splits.test), config)
        self.ended: list[str] = []

    def run(self) -> Compilation:
        """Compile.

        Raises:
            BudgetExceeded: The budget ended before even the baseline was measured.
            EngineError: The Engine is down.
            UsageError: A model that should help cannot be reached.
        """
        helpers = helping(self.engine, self.config)
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
            self.watcher.on_phase("search", f"{self.config.optimizer}, candidates on validation")
            measured += [found for found in self._search(calibrated, search, baseline, helpers) if found is not None]
        best = max(measured, key=_merit)
        self.watcher.on_phase("proof", f"{best.name} and the baseline on the test split, once")
        test = self._measure("test", best.program, self.splits.test, self.config.test)
        return Compilation(
            proof=None if best is baseline or test.stopped is not None else self._proof(),
            best=best,
            baseline=baseline,
            gain=self._gain(baseline, best),
            test=test,
            grid=grid,
            measured=tuple(measured),
            stopped=test.stopped.message if test.stopped is not None else self._stopped(search, len(measured)),
        )

    def _proof(self) -> PairedComparison | None:
        """Compare the baseline with the best program on the test split, where both were measured in full."""
        summary = self._measure("test-baseline", self.program, self.splits.test, self.config.test)
        if summary.stopped is not None:
            return None
        scores = [{each.id: each.score for each in read_results(self.run_dir / n)} for n in ("test-baseline", "test")]
        return compare_pairs([scores[0][key] for key in scores[1]], list(scores[1].values()))

    def _probe(self) -> dict[Cell, Count]:
        """Count successes for each adapter style and mode, with labelled demos where the benchmark has some.

        A few problems, with a few demos (`PROBE_DEMOS`), tell the styles apart. The modes of the best style then get
        three times as many more, with all demos, since the order of the paths hangs on them.
        """
        demos = labelled(self._train().examples, self.config.demos, self.config.seed)
        some = {name: each[:PROBE_DEMOS] for name, each in demos.items()}
        shown = {str(demo.problem) for each in demos.values() for demo in each}
        unseen = tuple(each for each in self._train().examples if each.problem.text.strip() not in shown)
        few, more = unseen[: self.config.probe], unseen[self.config.probe : 4 * self.config.probe]
        modes = probed(self.program.settings, self.program.modes(few[0].problem))
        grid: dict[Cell, Count] = {}
        for cell in cells(self.program.settings, modes):
            if (found := self._count(f"probe-{'-'.join(cell)}", cell, some, few)) is None:
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

    def _search(self, program: Coda, budget: Budget, baseline: Measured, helpers: Helpers) -> Iterator[Measured | None]:
        """Measure the calibrated program, then what the optimizer makes of it."""
        best: Measured | None = None
        if self.config.zero_shot:
            best = self._on_validation("calibrated", program)
            yield best
        bench = Workbench(
            program=program,
            train=self._train().examples,
            config=self.config,
            budget=budget,
            validation_cost=_usage(baseline.summary),
            teacher=helpers.teacher,
            reflection=helpers.reflection,
        )
        for candidate in optimizer(self.config.optimizer).candidates(bench):
            mended, caveats = self.guards.mend(candidate.program, self.program)
            for caveat in caveats:
                self.watcher.on_phase(candidate.name, caveat)
            found = self._on_validation(candidate.name, mended)
            if found is not None and (best is None or _merit(found) > _merit(best)):
                best, bench.best = found, found.program
            yield found
        self.ended += bench.ended

    def _train(self) -> Benchmark:
        return self.splits.train.model_copy(update={"examples": self.splits.train.examples[: self.config.train]})

    def _on_validation(self, name: str, program: Coda) -> Measured | None:
        """Measure on validation; ``None`` where the budget ended before all problems were measured."""
        summary = self._measure(name, program, self.splits.validation, self.config.validation)
        if summary.stopped is not None:
            return None
        records = list(read_results(self.run_dir / name))
        return Measured(name, program, summary, {record.id: record.score for record in records}, measures(records))

    def _measure(self, name: str, program: Coda, benchmark: Benchmark, limit: int | None) -> Summary:
        run_dir = self.run_dir / name
        config = EvaluationConfig(limit=limit, concurrency=self.config.concurrency)
        with self.watcher.measuring(name, run_dir) as observer:
            summary = evaluate(program, benchmark, config, run_dir=run_dir, observer=observer)
        if (fault := _outage(summary, run_dir)) is not None:
            raise EngineError(
                f"Measuring {name} failed: {fault.message} An outage must not count as wrong answers. "
                "Mend the cause and run the same command again: it goes on from here."
            )
        return summary

    def _without_reserve(self, baseline: Summary) -> Limits:
        """What the search may spend: the run's limits less what the proof needs.

        That is the test split for the baseline, and twice its price for the best program.
        """
        problems = min(self.config.test or len(self.splits.test.examples), len(self.splits.test.examples))
        share = 3 * problems / max(1, baseline.n)
        limits, budget = self.engine.config.limits, self.engine.budget
        calls = _left(limits.max_calls, budget.usage.calls + share * baseline.calls)
        tokens = _left(limits.max_tokens, budget.usage.tokens + share * baseline.tokens)
        return Limits(
            max_calls=None if calls is None else max(1, int(calls)),
            max_tokens=None if tokens is None else max(1, int(tokens)),
            max_seconds=_left(limits.max_seconds, budget.seconds + share * baseline.seconds),
            max_usd=_left(limits.max_usd, budget.usd * (1 + share)),
        )

    def _stopped(self, search: Budget, measured: int) -> str | None:
        reasons = [*self.ended, *(each.refused for each in (search, self.engine.budget) if each.refused is not None)]
        if not reasons:
            return None
        return (
            f"The search ended early, after {search.usage.calls} requests, with {measured} programs measured; the best "
            f"of them was kept. {reasons[0]}"
        )

    def _gain(self, baseline: Measured, best: Measured) -> PairedComparison:
        ids = [key for key in baseline.scores if key in best.scores]
        return compare_pairs([baseline.scores[key] for key in ids], [best.scores[key] for key in ids])


def _outage(summary: Summary, run_dir: Path) -> Fault | None:
    """The last error, where errors ended the run or no problem at all was spared (a budget's end is none)."""
    if summary.stopped is not None and summary.stopped.reason != "errors":
        return None
    errors = [record.error for record in read_results(run_dir) if record.error is not None]
    errors = [error for error in errors if error.kind != "budget"]
    return errors[-1] if errors and (summary.stopped is not None or len(errors) == summary.n) else None


def _merit(measured: Measured) -> tuple[float, int]:
    """By which programs are compared: the score on validation, and among equals the fewer tokens."""
    return measured.summary.score, -measured.summary.tokens


def _left(limit: float | None, spent: float) -> float | None:
    return None if limit is None else max(1e-3, limit - spent)


def _usage(summary: Summary) -> Usage:
    return Usage(**{name: getattr(summary, name) for name in Usage.model_fields})
