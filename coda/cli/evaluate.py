"""``coda eval``: measure a pipeline on a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from pydantic import Field

from coda.cli.options import EngineOptions, Json, Options, ProgramOptions, TrackingOptions

if TYPE_CHECKING:
    from coda.data.benchmarks import Benchmark
    from coda.optimize.rundir import RunDirectory
    from coda.optimize.summary import Summary
    from coda.program.conductor import Coda


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
    baseline: Literal["single", "self-consistency", "best-of-n"] | None = None
    """Measure a baseline in place of the pipeline: one answer in words, or several with a vote or comparisons."""
    baseline_samples: Annotated[float, Field(ge=1)] = 1.0
    """Answers to each problem that a baseline draws; of 2.25, a quarter of the problems gets 3, the others 2."""
    parallel: Annotated[int, Field(ge=1)] = 16
    """Problems worked on at once."""
    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Stop a run with a larger share of errors."""
    retry_errors: Annotated[bool, Parameter(negative=())] = False
    """Ask again for results that ended in an error."""
    run_dir: Path | None = None
    """Where the results go; the same command on the same directory goes on. By default runs/BENCHMARK-…"""


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
    from coda.cli.report import emit_json, show_summary
    from coda.data.benchmarks import load
    from coda.optimize.rundir import RunDirectory

    what, engine, program = what or EvalOptions(), engine or EngineOptions(), program or ProgramOptions()
    problems = load(benchmark, split=what.split, data_file=what.data_file)
    run_dir = what.run_dir or Path("runs") / f"{problems.name}-{what.baseline or 'coda'}-{what.split}"
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
    from coda.optimize.evaluate import EvaluationConfig, evaluate
    from coda.optimize.observers import Observers

    measured = Baseline(what.baseline, program, what.baseline_samples) if what.baseline else program
    config = EvaluationConfig(
        limit=what.limit,
        ids=what.ids,
        samples=what.samples,
        concurrency=what.parallel,
        max_error_rate=what.max_error_rate,
        retry_errors=what.retry_errors,
    )
    name = f"{problems.name} {what.baseline or 'coda'}"
    params = {"split": what.split, "evaluation": config.model_dump(mode="json"), "settings": settings_of(program)}
    with (
        tracking.tracker().run(name, params=params, run_dir=run.path) as tracked,
        EvaluationBar(name) as bar,
    ):
        return evaluate(measured, problems, config, run_dir=run, observer=Observers(bar, tracked))


def settings_of(program: Coda) -> dict[str, object]:
    """A program's settings as parameters of a tracked run."""
    return program.settings.model_dump(mode="json")
