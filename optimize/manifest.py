"""What a compilation writes into its artefact: the figures, and what calibration learned."""

from __future__ import annotations

from coda.data.benchmarks import Benchmark
from coda.optimize.artifact import BenchmarkReference, Cost, Gain, Manifest, ModeTrials, Policy, Score, SplitReference
from coda.optimize.compile import Compilation, CompileConfig, Splits
from coda.optimize.stats import PairedComparison
from coda.optimize.summary import Summary
from coda.program.conductor import Coda
from coda.program.types import Usage


def manifest_of(found: Compilation, splits: Splits, config: CompileConfig, program: Coda) -> Manifest:
    """Where the artefact comes from and what it was measured at.

    Args:
        found: What compiling came to.
        splits: The benchmark.
        config: How hard it tried.
        program: The program that it started from; its Engine did the work.
    """
    engine = program.own_engine
    measured = (("baseline", found.baseline.summary), ("compiled", found.best.summary), ("compiled", found.test))
    compared = {"test": found.proof, "validation": found.gain}
    return Manifest(
        model=engine.config.model,
        profile=engine.profile.name,
        effort=engine.config.effort,
        benchmark=_benchmark(splits),
        optimizer=config.optimizer,
        arguments=config.model_dump(mode="json"),
        scores=tuple(_score(name, summary) for name, summary in measured),
        gains=tuple(_gain(split, gain) for split, gain in compared.items() if gain is not None),
        cost=Cost(**engine.budget.usage.model_dump(), seconds=round(engine.budget.seconds, 1)),
    )


def policy_of(found: Compilation, splits: Splits) -> Policy:
    """What calibration learned, with its counts."""
    task = splits.train.examples[0].problem.task
    settings = found.best.program.settings
    counts = tuple(
        ModeTrials(
            task=task,
            adapter=adapter,
            mode=mode,
            successes=count.successes,
            trials=count.trials,
            readable=count.readable,
        )
        for (adapter, mode), count in found.grid.items()
    )
    return Policy(adapter=settings.adapter, modes={task: tuple(dict.fromkeys(settings.paths))}, counts=counts)


def _gain(split: str, gain: PairedComparison) -> Gain:
    return Gain(
        against="baseline",
        split=split,
        n=gain.difference.n,
        difference=gain.difference.mean,
        ci95=(gain.difference.low, gain.difference.high),
        gained=gain.gained,
        lost=gain.lost,
        p=gain.p,
    )


def _benchmark(splits: Splits) -> BenchmarkReference:
    parts = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    return BenchmarkReference(
        name=splits.test.name,
        digest=splits.test.digest,
        splits={name: _reference(part) for name, part in parts.items()},
    )


def _reference(part: Benchmark) -> SplitReference:
    return SplitReference(n=len(part.examples), digest=part.digest)


def _score(program: str, summary: Summary) -> Score:
    usage = Usage(**{name: getattr(summary, name) for name in Usage.model_fields})
    return Score(
        program=program,
        split=summary.split,
        n=summary.n,
        accuracy=summary.accuracy,
        ci95=summary.ci95,
        usage=usage,
        seconds=summary.seconds,
    )
