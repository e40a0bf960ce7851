"""Baselines beside a run: the same Engine, the same problems, and as many tokens.

    RUN/                            the program's own run
    RUN/baselines/single            what one call costs; measured whichever baseline is wanted
    RUN/baselines/NAME@SAMPLES      the baseline with so many samples that it costs as much as the program

All share the run's reply cache: the samples of one baseline are those of the others, and are paid for once. Tokens are
therefore compared by what replies are worth, whoever paid for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from coda.data.examples import Benchmark
from coda.errors import RunError, UsageError
from coda.experiments.baselines import Baseline, BaselineName, equal_samples
from coda.optimize.compare import compare
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.observers import Observer
from coda.optimize.summary import Beside, Summary
from coda.program.concurrency import run_sync
from coda.program.conductor import Coda
from coda.program.engine import Engine
from coda.program.engine.ledger import NO_REQUEST, Call, Ledger

TOLERANCE = 1.1
"""How many times the program's tokens a baseline may cost before it is measured again with fewer samples."""

MOST_TRIALS = 3
"""Comparisons of best-of-n come on top of its samples; how often its number is corrected for them."""

MOST_SAMPLES = 60
"""Samples of a baseline; more than the settings' most paths cannot be drawn."""

Watch = Callable[[str, Path], AbstractContextManager[Observer]]
"""Watches one measurement; given its name and its run directory."""


@dataclass(frozen=True)
class Measured:
    """A program, measured.

    Attributes:
        summary: Its figures.
        run_dir: Where it is.
    """

    summary: Summary
    run_dir: Path

    @property
    def tokens(self) -> float:
        """What its replies are worth for each result, on average."""
        return worth(self.run_dir / "calls.jsonl") / self.summary.n if self.summary.n else 0.0


def measure_beside(
    program: Coda,
    names: Sequence[BaselineName],
    problems: Benchmark,
    config: EvaluationConfig,
    own: Measured,
    watch: Watch,
) -> Summary:
    """Measure baselines beside a program that is measured already.

    Args:
        program: The program.
        names: The baselines, in the order in which they are measured; ``single`` always comes first, since it says
            what a sample costs.
        problems: What the program was measured on.
        config: How.
        own: The program's own run.
        watch: Is told of each measurement.

    Returns:
        The program's summary with `Summary.beside`; ``stopped`` where a baseline's measurement was.

    Raises:
        UsageError: The Engine reports no tokens, or the program has none of its own.
    """
    one = _measure(Baseline("single", program), problems, config, own.run_dir, watch)
    found, last = [_beside("single", 1.0, one, own)], one
    for name in dict.fromkeys(names):
        if name == "single" or last.summary.stopped is not None:
            continue
        last, samples = _at_equal_tokens(name, program, problems, config, own, one, watch)
        found.append(_beside(name, samples, last, own))
    stopped = own.summary.stopped or last.summary.stopped
    return own.summary.model_copy(update={"beside": tuple(each for each in found if each), "stopped": stopped})


def worth(calls: Path) -> int:
    """The tokens of all replies that a ledger tells of, each once for each problem and sample, whoever paid for it.

    A reply that was there already (from a baseline before, or from a command that was killed) counts as if it had been
    paid for here; one that was paid for here and read again after an interruption counts once.

    Raises:
        RunError: There is no ledger.
    """
    paid: dict[int, int] = {}
    free: dict[int, int] = {}
    try:
        stream = calls.open("rb")
    except OSError as error:
        raise RunError(f"{calls}: {error.strerror}. Equal tokens are reckoned from the run's ledger.") from error
    with stream:
        for line in stream:
            if line.endswith(b"\n"):
                call = Call.model_validate(json.loads(line))
                key = hash((call.problem, call.sample, call.request))
                tokens = call.prompt_tokens + call.completion_tokens
                if call.outcome in NO_REQUEST:
                    free[key] = max(tokens, free.get(key, 0))
                else:
                    paid[key] = paid.get(key, 0) + tokens
    return sum(paid.get(key, 0) or free.get(key, 0) for key in paid.keys() | free.keys())


def _at_equal_tokens(
    name: BaselineName,
    program: Coda,
    problems: Benchmark,
    config: EvaluationConfig,
    own: Measured,
    one: Measured,
    watch: Watch,
) -> tuple[Measured, float]:
    """Measure a baseline; again with fewer samples while it costs more than the program. Its samples are kept."""
    samples = min(float(MOST_SAMPLES), equal_samples(own.tokens, one.tokens))
    for trial in range(1, MOST_TRIALS + 1):
        measured = _measure(Baseline(name, program, samples), problems, config, own.run_dir, watch)
        excess = measured.tokens / own.tokens
        if trial == MOST_TRIALS or measured.summary.stopped is not None or excess <= TOLERANCE or samples == 1.0:
            break
        samples = max(1.0, round(samples / excess, 2))
    return measured, samples


def _measure(
    baseline: Baseline, problems: Benchmark, config: EvaluationConfig, run_dir: Path, watch: Watch
) -> Measured:
    if baseline.engine is None:
        raise UsageError("Equal tokens are reckoned from an Engine's ledger: give the program an Engine of its own.")
    folder = run_dir / "baselines" / baseline.name
    with ledger_at(baseline.engine, folder / "calls.jsonl"), watch(baseline.name, folder) as observer:
        return Measured(evaluate(baseline, problems, config, run_dir=folder, observer=observer), folder)


@contextmanager
def ledger_at(engine: Engine, file: Path) -> Iterator[None]:
    """Write the ledger of the block's requests into a file of its own."""
    run_sync(engine.settled())
    before, engine.ledger = engine.ledger, Ledger(file)
    try:
        yield
    finally:
        run_sync(engine.settled())
        engine.ledger.close()
        engine.ledger = before


def _beside(name: BaselineName, samples: float, measured: Measured, own: Measured) -> Beside | None:
    """What the baseline came to, and the program's gain over it, problem by problem; ``None`` without results."""
    if not measured.summary.n:
        return None
    (found,) = compare(measured.run_dir, own.run_dir)
    summary, gain = measured.summary, found.paired
    return Beside(
        baseline=name,
        samples=samples,
        run_dir=str(measured.run_dir.relative_to(own.run_dir)),
        n=summary.n,
        accuracy=summary.accuracy,
        ci95=summary.ci95,
        tokens_each=measured.tokens,
        own_tokens_each=own.tokens,
        calls=summary.calls,
        tokens=summary.tokens,
        gain=gain.difference.mean,
        gain_ci95=(gain.difference.low, gain.difference.high),
        gained=gain.gained,
        lost=gain.lost,
        p=gain.p,
    )
