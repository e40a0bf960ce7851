"""Compiling with everything that belongs to it: the run directory, tracking, and the artefact at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coda.data.benchmarks import load
from coda.errors import CodaError, NoGainError
from coda.experiments.curve import Curve
from coda.experiments.registry import register
from coda.experiments.tracking import TrackedRun, Tracker
from coda.optimize.artifact import ensure_replaceable, save
from coda.optimize.compile import Compilation, CompileConfig, Compiler, Splits
from coda.optimize.manifest import manifest_of, policy_of
from coda.optimize.observers import Observer, Observers
from coda.program.conductor import Coda

Show = Callable[[str], AbstractContextManager[Observer]]
"""Shows one measurement to the user; given its name."""

Tracking = tuple[Tracker, Show, Callable[[str], None]]
"""Where MLflow keeps the runs, how a measurement is shown, and how the user is told what comes next."""


def load_splits(benchmark: str, data_file: Path | None = None) -> Splits:
    """The three parts of a benchmark.

    Raises:
        DataError: It does not exist, or a part has no problems.
    """
    return Splits(
        train=load(benchmark, split="train", data_file=data_file),
        validation=load(benchmark, split="validation", data_file=data_file),
        test=load(benchmark, split="test", data_file=data_file),
    )


@dataclass(frozen=True)
class _Watcher:
    """Tells the user and MLflow of every measurement; each is a child run."""

    run: TrackedRun
    show: Show
    say: Callable[[str], None]
    curve: Curve

    def on_phase(self, phase: str, detail: str) -> None:
        self.say(f"{phase}: {detail}")

    @contextmanager
    def measuring(self, name: str, run_dir: Path) -> Iterator[Observer]:
        with self.run.child(name, run_dir=run_dir) as child, self.show(name) as shown:
            yield Observers(shown, child, self.curve)


def compile_and_save(
    program: Coda,
    splits: Splits,
    config: CompileConfig,
    *,
    run_dir: Path,
    out: Path,
    tracking: Tracking,
) -> Compilation:
    """Compile a program, save the artefact, and track all of it.

    Args:
        program: The program to start from.
        splits: The benchmark.
        config: How hard to try.
        run_dir: Where the measurements go; the same call continues what is there.
        out: The artefact's folder.
        tracking: Where MLflow keeps it, and how the user hears of it.

    Raises:
        BudgetExceeded: The budget ended before the baseline was measured.
        NoGainError: The gain is not proven, and ``config.require_gain`` asks for that; the measurements are kept.
        ArtifactError: ``out`` holds something else.
    """
    ensure_replaceable(out)
    tracker, show, say = tracking
    params = {"compile": config.model_dump(mode="json"), "settings": program.settings.model_dump(mode="json")}
    tags = {"coda.kind": "compile", "coda.benchmark": splits.test.name}
    with tracker.run(f"compile {splits.test.name}", params=params, tags=tags) as run:
        watcher = _Watcher(run, show, say, Curve(run, program.own_engine))
        found = Compiler(program, splits, config, run_dir=run_dir, watcher=watcher).run()
        if config.require_gain and (found.proof is None or not found.proof.proven):
            raise NoGainError(_no_gain(found))
        save(
            found.best.program,
            out,
            manifest=manifest_of(found, splits, config, program),
            policy=policy_of(found, splits),
        )
        run.metrics(
            {
                "validation/baseline": found.baseline.summary.accuracy,
                "validation/compiled": found.best.summary.accuracy,
                "validation/gain": found.gain.difference.mean,
                "validation/p": found.gain.p,
                "test/compiled": found.test.accuracy,
            }
        )
        if found.proof is not None:
            run.metrics({"test/gain": found.proof.difference.mean, "test/p": found.proof.p})
        run.artifact(out, "artefact")
        if (ledger := program.own_engine.ledger.path) is not None:
            run.artifact(ledger)
        if tracker.register:
            _register(out, run, run_dir / "test", say)
    return found


def _no_gain(found: Compilation) -> str:
    """Why nothing is published."""
    if found.proof is None:
        why = "no candidate was better than the baseline on validation, or the budget ended before the proof"
    else:
        gain = found.proof.difference
        why = (
            f"{found.best.name} gains {gain.mean * 100:+.1f} points on the test split, with an interval from "
            f"{gain.low * 100:+.1f} to {gain.high * 100:+.1f} and p = {found.proof.p:.2g}"
        )
    return f"Nothing was published (--require-gain): {why}. Raise the budget, or go without --require-gain."


def _register(folder: Path, run: TrackedRun, results: Path, say: Callable[[str], None]) -> None:
    """Register what was compiled; a registry that fails takes nothing of it away."""
    try:
        found = register(folder, run, results=results if (results / "results.jsonl").exists() else None)
    except CodaError as error:
        say(f"registry: {error}")
        return
    say(f"registry: {found.uri}. {found.why}")
