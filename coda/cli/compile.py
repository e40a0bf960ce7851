"""``coda compile``: the best pipeline for a model that the budget buys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from coda.cli.consent import consents
from coda.cli.console import emit_json, note
from coda.cli.display import show_compilation
from coda.cli.options import EngineOptions, Json, Options, ProgramOptions, TrackingOptions
from coda.cli.progress import EvaluationBar
from coda.experiments.compiling import compile_and_save, load_splits
from coda.optimize.artifact import read_manifest
from coda.optimize.compile import CompileConfig, Splits
from coda.optimize.estimate import estimate
from coda.optimize.optimizers import check_optimizer
from coda.optimize.rundir import RunDirectory
from coda.program.conductor import Coda


@Parameter(name="*")
class Where(Options):
    """Where things come from and go to."""

    data_file: Path | None = None
    """A local file in the benchmark's own schema."""
    out: Path | None = None
    """Folder of the compiled pipeline; by default compiled/BENCHMARK."""
    run_dir: Path | None = None
    """Where the measurements go; the same command on the same directory goes on. By default runs/compile-BENCHMARK."""
    to_registry: Annotated[bool, Parameter(name="--register", negative=())] = False
    """Put the compiled pipeline into MLflow's registry; it becomes the champion only where its gain is proven."""
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), negative=())] = False
    """Do not ask whether the estimated cost is all right."""


def compile_(
    benchmark: str,
    *,
    json: Json = False,
    where: Where | None = None,
    effort: Annotated[CompileConfig | None, Parameter(name="*")] = None,
    engine: EngineOptions | None = None,
    program: ProgramOptions | None = None,
    tracking: TrackingOptions | None = None,
) -> int:
    """Compile a pipeline for a model and a benchmark.

    The adapter style and the modes that work for this model are found by measuring; then an optimizer looks for better
    demos and instructions. The program that is best on validation is measured once on test, and written as a folder of
    JSON. What it is likely to cost is estimated from three problems, and asked about, before the rest is spent.

    Args:
        benchmark: A benchmark's name, or a JSONL file of your own.
        json: Print the artefact's manifest, with all figures, as one JSON document on stdout.
        where: Where things come from and go to.
        effort: How hard to try, and by which optimizer.
        engine: The Engine.
        program: The pipeline to start from.
        tracking: Where MLflow keeps it.
    """
    where, engine, config = where or Where(), engine or EngineOptions(), effort or CompileConfig()
    splits = load_splits(benchmark, where.data_file)
    for each in splits.test.notes:
        note(each)
    check_optimizer(config, splits.train.examples)
    run_dir = where.run_dir or Path("runs") / f"compile-{splits.test.name}"
    folder = where.out or Path("compiled") / splits.test.name
    # Bootstrapping leaves no records of its own: the cache lets an interrupted command go on for nothing.
    with RunDirectory(run_dir) as run, engine.open(run.calls, cache_dir=run_dir / "cache") as opened:
        built = (program or ProgramOptions()).build(opened)
        if not _agreed(built, splits, config, run_dir, yes=where.yes):
            note("Nothing more was spent.")
            return 1
        found = compile_and_save(
            built,
            splits,
            config,
            run_dir=run_dir,
            out=folder,
            tracking=((tracking or TrackingOptions()).tracker(register=where.to_registry), EvaluationBar, note),
        )
    if json:
        emit_json(read_manifest(folder))
    else:
        show_compilation(found, folder)
    return 3 if found.stopped else 0


def _agreed(program: Coda, splits: Splits, config: CompileConfig, run_dir: Path, *, yes: bool) -> bool:
    """Whether to begin, in view of what it is likely to cost; what was begun before is gone on with."""
    if (run_dir / "baseline").exists():
        return True
    with EvaluationBar("estimate") as bar:
        expected = estimate(program, splits, config, run_dir=run_dir / "estimate", observer=bar)
    return consents(expected, program.own_engine.config.limits, yes=yes)
