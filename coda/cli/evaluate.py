"""``coda eval``: measure a pipeline on a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from pydantic import Field

from coda.cli.options import EngineOptions, Json, Options, ProgramOptions, TrackingOptions
from coda.errors import UsageError

if TYPE_CHECKING:
    from coda.data.benchmarks import Benchmark
    from coda.experiments.tracking import TrackedRun
    from coda.optimize.evaluate import EvaluationConfig
    from coda.optimize.rundir import RunDirectory
    from coda.optimize.summary import Summary
    from coda.program.conductor import Coda

BaselineName = Literal["single", "self-consistency", "best-of-n"]


@Parameter(name="*")
class EvalOptions(Options):
    """What to measure on."""

    split: Literal["train", "validation", "test", "all"] = "test"
    """The part of the benchmark."""
    data_file: Path | None = None
    """A local file in the benchmark's own schema."""
    limit: Annotated[int | None, Field(ge=1)] = None
    """Only the first so many problems."""
    ids: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Only these problems; may be repeated."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Answers to each problem, each drawn anew (avg@k, pass@k, maj@k)."""
    baseline: Annotated[tuple[BaselineName, ...], Parameter(negative=())] = ()
    """Measure a baseline beside the pipeline, with the same Engine and at equal tokens: one answer in words, or as many
    as cost the same, with a vote or comparisons; may be repeated."""
    alone: Annotated[bool, Parameter(negative=())] = False
    """Measure the baseline in place of the pipeline, with --baseline-samples."""
    baseline_samples: Annotated[float | None, Field(ge=1)] = None
    """With --alone: answers to each problem; of 2.25, a quarter of the problems gets 3, the others 2."""
    parallel: Annotated[int, Field(ge=1)] = 16
    """Problems worked on at once."""
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Stop a run with a larger share of errors."""
    retry_errors: Annotated[bool, Parameter(negative=())] = False
    """Ask again for results that ended in an error."""
    run_dir: Path | None = None
    """Where the results go; the same command on the same directory goes on. By default runs/BENCHMARK-…"""

    def measured_alone(self) -> BaselineName | None:
        """The baseline that takes the pipeline's place, if one does.

        Raises:
            UsageError: ``--alone`` without exactly one baseline, or ``--baseline-samples`` without ``--alone``.
        """
        if self.alone and len(self.baseline) != 1:
            raise UsageError("--alone: name the one baseline that is measured in the pipeline's place with --baseline.")
        if self.baseline_samples is not None and not self.alone:
            raise UsageError(
                "--baseline-samples: beside a pipeline the number follows from its tokens. Leave it out, or give "
                "--alone to measure the baseline in the pipeline's place."
            )
        return self.baseline[0] if self.alone else None

    def config(self) -> EvaluationConfig:
        """How to measure."""
        from coda.optimize.evaluate import EvaluationConfig

        return EvaluationConfig(
            limit=self.limit,
            ids=self.ids,
            samples=self.samples,
            concurrency=self.parallel,
            max_error_rate=self.max_error_rate,
            retry_errors=self.retry_errors,
        )


def evaluate(
    benchmark: str,
    *,
    json: Json = False,
    what: EvalOptions | None = None,
    engine: EngineOptions | None = None,
    program: ProgramOptions | None = None,
    tracking: TrackingOptions | None = None,
) -> int:
    """Measure a pipeline on a benchmark: accuracy with its interval, cost, and where problems were lost.

    Args:
        benchmark: A benchmark's name, or a JSONL file of your own.
        json: Print the summary as one JSON document on stdout.
        what: What to measure on.
        engine: The Engine.
        program: The pipeline.
        tracking: Where MLflow keeps the run.
    """
    from coda.cli.console import note
    from coda.cli.display import emit_json, show_summary
    from coda.data.benchmarks import load
    from coda.optimize.rundir import RunDirectory

    what, engine, program = what or EvalOptions(), engine or EngineOptions(), program or ProgramOptions()
    alone = what.measured_alone()
    problems = load(benchmark, split=what.split, data_file=what.data_file)
    for each in problems.notes:
        note(each)
    run_dir = what.run_dir or Path("runs") / f"{problems.name}-{alone or 'coda'}-{what.split}"
    # With a cache of its own, a run that was killed pays for nothing twice, requests in flight included.
    with RunDirectory(run_dir) as run, engine.open(run.calls, cache_dir=run_dir / "cache") as opened:
        summary = _measure(run, problems, what, program.build(opened), tracking or TrackingOptions())
    if json:
        emit_json(summary)
    else:
        show_summary(summary, run_dir)
    return exit_status(summary)


def exit_status(summary: Summary) -> int:
    """0 for a whole run, 3 where a budget ended it, 1 where its errors did."""
    if summary.stopped is None:
        return 0
    return 3 if summary.stopped.reason == "budget" else 1


def _measure(
    run: RunDirectory, problems: Benchmark, what: EvalOptions, program: Coda, tracking: TrackingOptions
) -> Summary:
    from coda.cli.progress import EvaluationBar
    from coda.experiments.baselines import Baseline
    from coda.optimize.evaluate import evaluate
    from coda.optimize.observers import Observers

    alone, config = what.measured_alone(), what.config()
    measured = Baseline(alone, program, what.baseline_samples or 1.0) if alone else program
    name = f"{problems.name} {alone or 'coda'}"
    params = {"split": what.split, "evaluation": config.model_dump(mode="json"), "settings": settings_of(program)}
    with tracking.tracker().run(name, params=params, run_dir=run.path) as tracked:
        with EvaluationBar(name) as bar:
            summary = evaluate(measured, problems, config, run_dir=run, observer=Observers(bar, tracked))
        if what.baseline and not alone:
            summary = _beside(run, problems, what, program, summary, tracked)
        return summary


def _beside(
    run: RunDirectory, problems: Benchmark, what: EvalOptions, program: Coda, own: Summary, tracked: TrackedRun
) -> Summary:
    """Measure the baselines, each as a child of the tracked run."""
    from coda.cli.console import note
    from coda.cli.progress import EvaluationBar
    from coda.experiments.equal_tokens import Measured, measure_beside
    from coda.experiments.figures import beside_metrics
    from coda.optimize.observers import Observer, Observers

    if own.stopped is not None:
        note("Baselines are measured when the pipeline's own run is whole.")
        return own

    @contextmanager
    def watch(name: str, folder: Path) -> Iterator[Observer]:
        with tracked.child(f"{problems.name} {name}", run_dir=folder) as child, EvaluationBar(name) as bar:
            yield Observers(bar, child)

    summary = measure_beside(program, what.baseline, problems, what.config(), Measured(own, run.path), watch)
    # On the disk ``stopped`` is about the run alone: one that a baseline's errors stopped has no errors to ask again.
    run.write_summary(summary.model_copy(update={"stopped": own.stopped}))
    tracked.metrics(beside_metrics(summary))
    return summary


def settings_of(program: Coda) -> dict[str, object]:
    """A program's settings as parameters of a tracked run."""
    return program.settings.model_dump(mode="json")
