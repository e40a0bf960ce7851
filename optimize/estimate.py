"""What a compilation is likely to cost, before it begins: a few problems are solved, the rest is multiplication."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from coda.data.examples import digest_of
from coda.optimize.calibrate import cells, probed
from coda.optimize.compile import Splits
from coda.optimize.config import CompileConfig
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.observers import Observer
from coda.optimize.optimizers import optimizer
from coda.optimize.records import read_results
from coda.program.conductor import Coda
from coda.program.engine.config import Prices

PROBLEMS = 3
"""Training problems that the estimate is made from."""

MANY = 10**9


@dataclass(frozen=True)
class Cost:
    """What something costs, or is likely to.

    Attributes:
        calls: Requests.
        prompt_tokens: Tokens of their prompts.
        completion_tokens: Tokens of the replies.
        seconds: On the clock, as many problems at once as the compilation works on.
        usd: ``None`` where prices are not known.
    """

    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    seconds: float = 0.0
    usd: float | None = None

    @property
    def tokens(self) -> float:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def times(self, factor: float) -> Cost:
        """So many times as much."""
        return Cost(
            self.calls * factor,
            self.prompt_tokens * factor,
            self.completion_tokens * factor,
            self.seconds * factor,
            None if self.usd is None else self.usd * factor,
        )

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
        )


@dataclass(frozen=True)
class Phase:
    """A phase of the compilation.

    Attributes:
        name: As the compiler calls it.
        problems: Problems that are run through the pipeline, or one path of it.
        cost: What that is likely to cost at most.
    """

    name: str
    problems: int
    cost: Cost


@dataclass(frozen=True)
class Estimate:
    """What is likely to be spent, if no limit ends it before.

    Attributes:
        probed: Problems that it is made from.
        phases: Each phase, in order.
    """

    probed: int
    phases: tuple[Phase, ...]

    @property
    def total(self) -> Cost:
        """All phases together."""
        first, *others = (phase.cost for phase in self.phases)
        return sum(others, first)


def estimate(program: Coda, splits: Splits, config: CompileConfig, *, run_dir: Path, observer: Observer) -> Estimate:
    """Solve a few training problems and work out what compiling will cost.

    The problems count against the run's budget; the same call again asks nothing.

    Args:
        program: The program to start from.
        splits: The benchmark.
        config: How hard to try.
        run_dir: Where the measurement goes.
        observer: Watches it.
    """
    examples = splits.train.examples[:PROBLEMS]
    probed = splits.train.model_copy(update={"examples": examples, "digest": digest_of(examples)})
    setup = EvaluationConfig(concurrency=min(PROBLEMS, config.concurrency))
    summary = evaluate(program, probed, setup, run_dir=run_dir, observer=observer)
    seconds = sum(record.seconds for record in read_results(run_dir)) / max(1, summary.n)
    prices = program.own_engine.config.prices
    each = _cost(summary.calls, summary.prompt_tokens, summary.completion_tokens, seconds, prices)
    return Estimate(summary.n, phases(program, splits, config, _per_problem(each, summary.n, config.concurrency)))


def phases(program: Coda, splits: Splits, config: CompileConfig, each: Cost) -> tuple[Phase, ...]:
    """The phases of a compilation, when one problem costs ``each``."""
    train = min(config.train, len(splits.train.examples))
    validation = min(config.validation or MANY, len(splits.validation.examples))
    test = min(config.test or MANY, len(splits.test.examples))
    plan = optimizer(config.optimizer).plan(config, train)
    candidates = plan.validations + config.zero_shot
    modes = probed(program.settings, program.modes(splits.train.examples[0].problem))
    grid = config.probe * len(cells(program.settings, modes)) + 3 * config.probe * len(modes)
    one_call = each.times(1 / max(1.0, each.calls))
    return (
        Phase("baseline", validation, each.times(validation)),
        Phase("probe", grid, one_call.times(grid)),
        Phase(f"search ({config.optimizer})", plan.rollouts, each.times(plan.rollouts)),
        Phase("candidates", candidates * validation, each.times(candidates * validation)),
        Phase("proof", 2 * test, each.times(2 * test)),
    )


def _per_problem(total: Cost, problems: int, at_once: int) -> Cost:
    """One problem's share; its time on the clock is shared with those that are worked on beside it."""
    share = total.times(1 / max(1, problems))
    return Cost(share.calls, share.prompt_tokens, share.completion_tokens, total.seconds / at_once, share.usd)


def _cost(calls: int, prompt: int, completion: int, seconds: float, prices: Prices | None) -> Cost:
    return Cost(calls, prompt, completion, seconds, None if prices is None else prices.usd(prompt, completion))
