"""How accuracy grows with tokens: the presets against self-consistency, on a model whose skill is known.

The model is `simulated`; its parameters are figures of recorded answers (graded here, with ``--data``, or as they were
graded last, in `RECORDED`) and the mean gain that was published for the workflow, `PUBLISHED`.

    python tests/bench/bench_effort.py --problems 2000 --picture docs/effort.svg
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import dspy
import numpy as np
from simulated import (
    Calculator,
    Difficulty,
    Figures,
    Lengths,
    SimulatedModel,
    Skill,
    fit,
    population,
    problem_of,
    simulated,
)

from coda.experiments.baselines import Baseline
from coda.program.concurrency import run_sync
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.presets import preset
from coda.program.settings import Settings

RECORDED = (
    Figures("MATH, 50 problems × 8 answers", k=8, pass_at_1=0.880, majority=0.900, oracle=0.980),
    Figures("GSM8K, 300 problems × 4 answers", k=4, pass_at_1=0.3933, majority=0.4633, oracle=0.6633),
)
"""Graded by ``coda verify`` (docs/benchmarks.md)."""

PUBLISHED = {
    "Qwen3-8B": ((74.0, 86.7), (68.3, 80.0), (59.3, 62.5), (55.7, 60.5)),
    "Qwen3-32B": ((81.4, 90.7), (72.9, 83.3), (66.8, 70.0), (65.7, 71.9)),
}
"""Single call and workflow on AIME24, AIME25, GPQA-diamond and LiveCodeBench, as their vendor published them in
September 2025."""

CORRELATION = 0.40
"""Of the modes' success: of SmolLM2-135M on six kinds of sums, in words (63, 20, 47, 7, 0, 13 % right) and by programs
(87, 100, 97, 30, 80, 93 %)."""

ATTEMPT_TOKENS = 300
"""Tokens of an attempt. The recorded MATH answers have about 1,200 characters."""

AT_ONCE = 64


@dataclass(frozen=True)
class Point:
    """One way of working, measured."""

    name: str
    right: np.ndarray
    tokens: float
    calls: float

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    def margin(self, other: Point) -> tuple[float, float]:
        """Difference in accuracy with the half width of its 95 % interval, problem by problem."""
        difference = self.right - other.right
        return float(difference.mean()), float(1.96 * difference.std(ddof=1) / math.sqrt(len(difference)))


class Bench:
    """The model, asked in every way."""

    def __init__(self, skills: dict[int, Skill], insight: float, seed: int) -> None:
        self.skills = skills
        self.insight = insight
        self.seed = seed

    def measure(self, name: str, program_of: object) -> Point:
        """Solve every problem."""
        model = SimulatedModel(self.skills, self.insight, Lengths(attempt=ATTEMPT_TOKENS), self.seed)
        with Engine(EngineConfig(model="openai/simulated", api_base="http://127.0.0.1:9/v1")) as engine:
            program = program_of(simulated(engine, model))  # type: ignore[operator]
            solutions = run_sync(_all(program, list(self.skills)))
        right = np.array([s.answer == str(self.skills[n].answer) for n, s in zip(self.skills, solutions, strict=True)])
        spent = [solution.usage for solution in solutions]
        return Point(
            name,
            right.astype(float),
            statistics.fmean(usage.tokens for usage in spent),
            statistics.fmean(usage.calls for usage in spent),
        )

    def preset(self, name: str) -> Point:
        return self.measure(name, lambda engine: Coda(settings(name), engine=engine, sandbox=Calculator()))

    def sampled(self, samples: float) -> Point:
        name = "single" if samples == 1 else "self-consistency"
        label = name if samples == 1 else f"self-consistency@{samples:g}"
        return self.measure(
            label, lambda engine: Baseline(name, Coda(settings("auto"), engine=engine, sandbox=Calculator()), samples)
        )


async def _all(program: object, numbers: list[int]) -> list[object]:
    import asyncio

    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> object:
        async with slots:
            return await program.asolve(problem_of(number))  # type: ignore[attr-defined]

    with dspy.context(trace=None):
        return list(await asyncio.gather(*map(one, numbers)))


def settings(name: str) -> Settings:
    """A preset as it is, in the adapter style that the simulated model reads."""
    return preset(name, {"adapter": "plain"})


def published_gain() -> float:
    """The mean gain over single calls that was published for the workflow."""
    return statistics.fmean(after - before for pairs in PUBLISHED.values() for before, after in pairs) / 100


def published_difficulty() -> Difficulty:
    """Problems as hard as the published ones for a single call, spread as the recorded MATH problems are."""
    spread = fit(RECORDED[0])
    mean = statistics.fmean(before for pairs in PUBLISHED.values() for before, _ in pairs) / 100
    size = spread.a + spread.b
    return Difficulty(size * mean, size * (1 - mean), spread.lure)


def calibrated_insight(problems: int, seed: int) -> tuple[float, list[tuple[float, float]]]:
    """The judge's insight at which ``published`` gains what was published; and the gains tried."""
    skills = population([published_difficulty()], problems, CORRELATION, seed)
    single = Bench(skills, 0.0, seed).sampled(1).accuracy
    tried = [
        (insight, Bench(skills, insight, seed).preset("published").accuracy - single)
        for insight in (0.0, 0.1, 0.2, 0.3, 0.5)
    ]
    found = float(np.interp(published_gain(), [gain for _, gain in tried], [insight for insight, _ in tried]))
    return found, tried


def show(points: Iterable[Point]) -> None:
    print(f"{'':<24}{'accuracy':>10}{'± 95 %':>9}{'tokens':>9}{'calls':>8}")
    for each in points:
        half = 1.96 * math.sqrt(each.accuracy * (1 - each.accuracy) / len(each.right))
        print(f"{each.name:<24}{each.accuracy:>10.1%}{half:>9.1%}{each.tokens:>9.0f}{each.calls:>8.1f}")


def draw(file: Path, curve: list[Point], presets: list[Point]) -> None:
    """Accuracy against tokens: the curve of self-consistency, and the presets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    tokens, shares = [each.tokens for each in curve], [100 * each.accuracy for each in curve]
    axes.plot(tokens, shares, "o-", color="0.55", label="self-consistency")
    for each in presets:
        half = 196 * math.sqrt(each.accuracy * (1 - each.accuracy) / len(each.right))
        axes.errorbar(each.tokens, 100 * each.accuracy, yerr=half, fmt="s", capsize=3, label=each.name)
    axes.set(xscale="log", xlabel="tokens for each problem", ylabel="accuracy, %")
    axes.set_title(f"Simulated model, {len(curve[0].right)} problems, 95 % intervals")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--insight", type=float, help="of a judge; by default as calibrated")
    parser.add_argument("--picture", type=Path, help="write the curve here, as SVG")
    options = parser.parse_args()
    for figures in RECORDED:
        print(f"{figures.name}: {fit(figures)}")
    insight = options.insight
    if insight is None:
        insight, tried = calibrated_insight(options.problems, options.seed + 1)
        print(f"published gain {published_gain():.1%}; here, by insight: {[(i, f'{g:.1%}') for i, g in tried]}")
    print(f"correlation between the modes {CORRELATION:.2f}, insight of a judge {insight:.2f}")
    kinds = [fit(figures) for figures in RECORDED]
    bench = Bench(population(kinds, options.problems, CORRELATION, options.seed), insight, options.seed)
    single = bench.sampled(1)
    presets = [bench.preset(name) for name in ("fast", "auto", "thorough", "published")]
    auto, thorough = presets[1], presets[2]
    equal = bench.sampled(max(1.0, round(auto.tokens / single.tokens, 2)))
    curve = [bench.sampled(k) for k in (3, 5, 9, 17, 33)]
    show([single, *presets, equal, *curve])
    for name, other in (("thorough", thorough), (equal.name, equal), ("published", presets[3])):
        gain, half = auto.margin(other)
        print(f"auto − {name}: {gain:+.1%} ± {half:.1%} at {auto.tokens / other.tokens:.2f} of its tokens")
    if options.picture is not None:
        draw(options.picture, [single, *curve], presets)


if __name__ == "__main__":
    main()
