"""The main job, end to end, on the embedded Engine: single call → uncompiled → compile → compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coda.data.benchmarks import load
from coda.experiments.baselines import Baseline
from coda.experiments.compiling import Show, compile_and_save, load_splits
from coda.experiments.tracking import Tracker
from coda.optimize.compile import CompileConfig
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.export import export
from coda.optimize.identity import Program
from coda.optimize.observers import Observers
from coda.optimize.rundir import write_whole
from coda.optimize.summary import Summary
from coda.program.conductor import Coda

BENCHMARK = "words"

EFFORT = CompileConfig(probe=4, candidates=6, demos=8, validation=32)
"""What a few minutes on two cores buy."""


@dataclass(frozen=True)
class Quickstart:
    """What the main job came to: figures on the same test problems, and where everything is."""

    single: Summary
    coda: Summary
    compiled: Summary
    artifact: Path
    prompts: Path
    summary: Path


def run_quickstart(
    program: Coda, *, directory: Path, tracker: Tracker, show: Show, say: Callable[[str], None]
) -> Quickstart:
    """Run the main job.

    Args:
        program: The uncompiled program.
        directory: Where everything goes; the same call continues what is there.
        tracker: Where MLflow keeps the runs.
        show: Shows one measurement.
        say: Tells the user what comes next.
    """
    test = load(BENCHMARK, split="test")

    def measure(name: str, measured: Program) -> Summary:
        run_dir = directory / name
        with tracker.run(name, run_dir=run_dir) as tracked, show(name) as shown:
            return evaluate(measured, test, EvaluationConfig(), run_dir=run_dir, observer=Observers(shown, tracked))

    say(f"Three programs, one Engine, {len(test.examples)} problems that compiling never sees.")
    single = measure("single", Baseline("single", program))
    uncompiled = measure("coda", program)
    artifact, prompts = directory / "compiled", directory / "prompts"
    found = compile_and_save(
        program,
        load_splits(BENCHMARK),
        EFFORT,
        run_dir=directory / "compile",
        out=artifact,
        tracking=(tracker, show, say),
    )
    export(artifact, "markdown", prompts)
    summary = directory / "summary.json"
    done = Quickstart(single, uncompiled, found.test, artifact, prompts, summary)
    write_whole(summary, {name: _figures(getattr(done, name)) for name in ("single", "coda", "compiled")})
    return done


def _figures(summary: Summary) -> dict[str, object]:
    names = ("accuracy", "n", "ci95", "calls", "tokens", "seconds")
    return {name: value for name, value in json.loads(summary.model_dump_json()).items() if name in names}
