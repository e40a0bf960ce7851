"""The main job, end to end, on the embedded Engine: single call → uncompiled → compile → compiled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from coda.data.benchmarks import load
from coda.experiments.baselines import Baseline
from coda.experiments.compiling import Tracking, compile_and_save, load_splits
from coda.optimize.compile import CompileConfig
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.export import export
from coda.optimize.identity import Program
from coda.optimize.observers import Observers
from coda.optimize.rundir import write_whole
from coda.optimize.summary import Summary
from coda.program.conductor import Coda

BENCHMARK = "words"


class QuickstartConfig(BaseModel):
    """How much to do; by default what a few minutes on two cores buy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    effort: CompileConfig = CompileConfig(
        optimizer="random-search", probe=2, candidates=2, zero_shot=False, demos=16, train=28, validation=24
    )
    limit: int = 60
    """Test problems."""


@dataclass(frozen=True)
class Quickstart:
    """What the main job came to: figures on the same test problems, and where everything is."""

    single: Summary
    coda: Summary
    compiled: Summary
    artifact: Path
    prompts: Path
    summary: Path


def run_quickstart(program: Coda, config: QuickstartConfig, *, directory: Path, tracking: Tracking) -> Quickstart:
    """Run the main job.

    Args:
        program: The uncompiled program.
        config: How much to do.
        directory: Where everything goes; the same call continues what is there.
        tracking: Where MLflow keeps the runs, and how the user hears of them.
    """
    test = load(BENCHMARK, split="test")
    tracker, show, say = tracking

    def measure(name: str, measured: Program) -> Summary:
        run_dir = directory / name
        with tracker.run(name, run_dir=run_dir) as tracked, show(name) as shown:
            return evaluate(
                measured,
                test,
                EvaluationConfig(limit=config.limit),
                run_dir=run_dir,
                observer=Observers(shown, tracked),
            )

    say(f"Three programs, one Engine, {config.limit} problems that compiling never sees.")
    single = measure("single", Baseline("single", program))
    uncompiled = measure("coda", program)
    artifact, prompts = directory / "compiled", directory / "prompts"
    found = compile_and_save(
        program,
        load_splits(BENCHMARK),
        config.effort.model_copy(update={"test": config.limit}),
        run_dir=directory / "compile",
        out=artifact,
        tracking=tracking,
    )
    export(artifact, "markdown", prompts)
    summary = directory / "summary.json"
    done = Quickstart(single, uncompiled, found.test, artifact, prompts, summary)
    write_whole(summary, {name: _figures(getattr(done, name)) for name in ("single", "coda", "compiled")})
    return done


def _figures(summary: Summary) -> dict[str, object]:
    names = ("accuracy", "n", "ci95", "calls", "tokens", "seconds")
    return {name: value for name, value in json.loads(summary.model_dump_json()).items() if name in names}
