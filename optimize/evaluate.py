"""The evaluator: a program, a benchmark, and a run directory that holds every result as it comes.

Written for this project, since DSPy's own asks stragglers twice and gives up after ten errors. Problems are worked on
by a fixed number of workers, so that memory does not grow with the benchmark; an error is a result; and a run that was
interrupted, even by ``kill -9``, goes on with the same command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field

from coda.data.examples import Benchmark, Example
from coda.errors import DataError
from coda.optimize.admission import Admission
from coda.optimize.examine import examine, solve
from coda.optimize.identity import Program, fingerprint, identify, model_of, name_of, provenance, sandbox_of
from coda.optimize.meter import StageMeter
from coda.optimize.observers import Observer, Observers
from coda.optimize.records import Key, Record
from coda.optimize.rundir import RunDirectory
from coda.optimize.summary import Facts, Stop, Summary, Tally, read_summary
from coda.program.answers import group
from coda.program.concurrency import gather_ordered, run_sync
from coda.program.engine.budget import budgets_in_force, spending
from coda.program.engine.labels import labelled
from coda.program.types import Usage

__all__ = ["EvaluationConfig", "Observer", "Observers", "Summary", "aevaluate", "evaluate", "select"]

MANY_ERRORS = 10
"""An error rate is not judged before so many errors."""


class EvaluationConfig(BaseModel):
    """How to measure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: int | None = Field(default=None, ge=1)
    """The first so many problems."""
    ids: tuple[str, ...] = ()
    """Only these problems."""
    samples: int = Field(default=1, ge=1)
    """Answers to each problem, each drawn anew."""
    concurrency: int = Field(default=16, ge=1)
    """Problems worked on at once."""
    max_error_rate: float = Field(default=0.5, ge=0.0, le=1.0)
    """A run with a larger share of errors stops; the same command goes on once the cause is mended."""
    retry_errors: bool = False
    """Ask again for results that are errors. Without it only a run that its errors stopped does."""


def evaluate(
    program: Program,
    benchmark: Benchmark,
    config: EvaluationConfig | None = None,
    *,
    run_dir: Path | RunDirectory,
    observer: Observer | None = None,
) -> Summary:
    """Measure a program and wait for it; see `aevaluate`.

    Raises:
        KeyboardInterrupt: The user interrupted it. All results so far are on the disk, the summary included.
    """
    return run_sync(aevaluate(program, benchmark, config, run_dir=run_dir, observer=observer))


async def aevaluate(
    program: Program,
    benchmark: Benchmark,
    config: EvaluationConfig | None = None,
    *,
    run_dir: Path | RunDirectory,
    observer: Observer | None = None,
) -> Summary:
    """Measure a program on a benchmark.

    Args:
        program: What to measure.
        benchmark: The problems with their reference answers.
        config: How to measure.
        run_dir: Where everything goes. Results that are there already are not asked again.
        observer: Is told what happens.

    Returns:
        The figures, also in ``summary.json``. ``stopped`` says why a run ended early (a budget, too many errors).

    Raises:
        DataError: No problem is left to ask, or an id does not exist.
        RunError: The directory belongs to another configuration or process, or the disk is full.
        asyncio.CancelledError: It was cancelled; the results so far and the summary are on the disk.
    """
    config = config or EvaluationConfig()
    examples = select(benchmark, config)
    with RunDirectory(run_dir) if isinstance(run_dir, Path) else nullcontext(run_dir) as run:
        run.claim(_identity(program, benchmark, examples, config), provenance(program))
        return await _Evaluation(program, benchmark, examples, config, run, observer or Observers()).run()


def select(benchmark: Benchmark, config: EvaluationConfig) -> list[Example]:
    """The examples that a configuration asks for, in the benchmark's order.

    Raises:
        DataError: An id does not exist or is not unique, or nothing is left.
    """
    known = {example.id: example for example in benchmark.examples}
    if len(known) < len(benchmark.examples):
        raise DataError(f"Benchmark {benchmark.name}: ids are not unique. Give every row an id of its own.")
    missing = [id for id in config.ids if id not in known]
    if missing:
        raise DataError(
            f"Benchmark {benchmark.name} has no problem {', '.join(missing[:5])}. "
            f"Look at its ids with: coda data show {benchmark.name}"
        )
    wanted = set(config.ids)
    chosen = [example for example in benchmark.examples if not wanted or example.id in wanted][: config.limit]
    if not chosen:
        raise DataError(f"Benchmark {benchmark.name}: no problem is left to ask. Widen the split, --limit or --ids.")
    return chosen


def _identity(
    program: Program, benchmark: Benchmark, examples: list[Example], config: EvaluationConfig
) -> dict[str, Any]:
    return {
        "benchmark": {"name": benchmark.name, "split": benchmark.split, "digest": benchmark.digest},
        "evaluation": {
            "problems": len(examples),
            "ids": fingerprint([example.id for example in examples]),
            "samples": config.samples,
        },
        "program": identify(program),
    }


class _Evaluation:
    """One command's work on a run."""

    def __init__(
        self,
        program: Program,
        benchmark: Benchmark,
        examples: list[Example],
        config: EvaluationConfig,
        run: RunDirectory,
        observer: Observer,
    ) -> None:
        self._program = program
        self._benchmark = benchmark
        self._examples = examples
        self._config = config
        self._run = run
        self._observer = observer
        self._tally = Tally(config.samples)
        engine = getattr(program, "engine", None)
        self._budgets = (*([engine.budget] if engine is not None else []), *budgets_in_force())
        self._admission = Admission(self._budgets)
        self._asked = self._failed = 0
        self._stop: Stop | None = None
        self._unfinished = Usage()
        self._seconds = 0.0
        self._started = time.monotonic()

    async def run(self) -> Summary:
        """Ask what is not there yet, and sum up, even when cancelled."""
        finished = self._finished()
        self._observer.on_start(len(self._examples) * self._config.samples, len(finished))
        pending = self._pending(finished)
        try:
            with dspy.context(trace=None):
                await gather_ordered(self._worker(pending) for _ in range(self._config.concurrency))
        except asyncio.CancelledError:
            self._stop = Stop(reason="interrupted", message="Interrupted. Run the same command again to go on.")
            await self._conclude()
            raise
        return await self._conclude()

    def _finished(self) -> set[Key]:
        """Read what is there; errors are asked again where the user says so, and where they stopped the run."""
        for record in self._run.resume():
            self._tally.add(record)
        again = self._config.retry_errors
        if (self._run.path / "summary.json").exists():
            last = read_summary(self._run.path)
            self._seconds += last.seconds
            self._unfinished += last.unfinished
            again = again or (last.stopped is not None and last.stopped.reason == "errors")
        return self._tally.findings.keys() - (self._tally.errors.keys() if again else set())

    def _pending(self, finished: set[Key]) -> Iterator[tuple[Example, int]]:
        """What is left to ask: every problem once before any is asked again."""
        for sample in range(self._config.samples):
            for example in self._examples:
                if (example.id, sample) not in finished:
                    yield example, sample

    async def _worker(self, pending: Iterator[tuple[Example, int]]) -> None:
        """Take what is pending, one after the other, until nothing is left or the run must stop."""
        for example, sample in pending:
            meter = StageMeter()
            async with self._admission.admit(meter):
                record = None if self._stop is not None else await self._ask(example, sample, meter)
            if record is None:
                return
            self._run.append(record)
            self._tally.add(record)
            self._observer.on_result(record)
            self._judge(record)

    async def _ask(self, example: Example, sample: int, meter: StageMeter) -> Record | None:
        """Solve and grade one problem; ``None`` where the run's budget ended in the middle of it."""
        started = time.monotonic()
        try:
            with labelled(problem=example.problem.key, sample=sample), spending(meter):
                solution = await solve(self._program, example.problem)
            if solution.fault != "budget" or (stop := self._budget_ended()) is None:
                cost = {"usage": meter.usage, "seconds": time.monotonic() - started}
                solution = solution.model_copy(update=cost)
                return await examine(example, sample, solution, meter.stages, getattr(self._program, "sandbox", None))
        except BaseException:
            self._unfinished += meter.usage
            raise
        self._unfinished += meter.usage
        self._stop = self._stop or stop
        return None

    def _budget_ended(self) -> Stop | None:
        """Whether a budget of the whole run has refused a request."""
        refused = next((budget.refused for budget in self._budgets if budget.refused is not None), None)
        return Stop(reason="budget", message=refused) if refused is not None else None

    def _judge(self, record: Record) -> None:
        """Stop a run that is hopeless; a limit on each problem is no fault, however often it is reached."""
        self._asked += 1
        self._failed += record.error is not None and record.error.kind != "budget"
        if self._failed >= MANY_ERRORS and self._failed > self._config.max_error_rate * self._asked:
            reason = record.error.message if record.error is not None else "see results.jsonl"
            self._stop = self._stop or Stop(
                reason="errors",
                message=f"{self._failed} of {self._asked} problems ended in an error, the last with: {reason} "
                "Mend the cause and run the same command again, or raise --max-error-rate.",
            )

    async def _conclude(self) -> Summary:
        """Sum up, on the disk too."""
        facts = Facts(
            benchmark=self._benchmark.name,
            split=self._benchmark.split,
            digest=self._benchmark.digest,
            model=model_of(self._program),
            program=name_of(self._program),
            sandbox=sandbox_of(self._program),
            planned=len(self._examples) * self._config.samples,
            seconds=self._seconds + time.monotonic() - self._started,
            unfinished=self._unfinished,
            stopped=self._stop,
        )
        summary = self._tally.summary(facts, await self._classes())
        self._run.write_summary(summary)
        self._observer.on_end(summary)
        return summary

    async def _classes(self) -> dict[Key, int]:
        """For maj@k, the class of each final answer among the answers to its problem."""
        problems = {example.id: example.problem for example in self._examples}
        classes: dict[Key, int] = {}
        for id, answers in self._tally.answers.items():
            samples = sorted(answers)
            found = await group([answers[sample] for sample in samples], problems[id].task, problems[id].choices)
            classes |= {(id, samples[place]): label for label, members in enumerate(found) for place in members}
        return classes
