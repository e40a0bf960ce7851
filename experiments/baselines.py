"""Baselines: what the same Engine does without a Conductor, and with as many tokens.

    single             one answer in words
    self-consistency   k answers in words, and a vote (Wang et al., arXiv:2203.11171)
    best-of-n          k answers in words, and comparisons in pairs between those that differ

They are the same program with everything else switched off: same adapter, same prompt, same sampling, same records.
For a problem that wants a program, an answer is a program, and tests that the problem shows are run.
"""

from __future__ import annotations

import hashlib
import math
from typing import Literal

import dspy

from coda.errors import UsageError
from coda.program.concurrency import run_sync
from coda.program.conductor import Coda
from coda.program.settings import Settings, Strategy
from coda.program.types import Problem, Solution

BaselineName = Literal["single", "self-consistency", "best-of-n"]

_VERIFIERS: dict[BaselineName, Strategy] = {
    "single": "vote",
    "self-consistency": "vote",
    "best-of-n": "compare",
}


class Baseline(dspy.Module):
    """Samples a number of answers to each problem and chooses one.

    Args:
        name: Which baseline.
        program: The program that it stands beside; its Engine, adapter, sampling and sandbox are used, its demos and
            instructions are not.
        samples: Answers to each problem. Of 2.25, a quarter of the problems gets 3, the others 2; which ones is fixed
            by their content.

    Example:
        >>> k = equal_samples(coda.tokens / coda.n, single.tokens / single.n)  # doctest: +SKIP
        >>> evaluate(Baseline("self-consistency", program, k), benchmark, run_dir=Path("runs/sc"))  # doctest: +SKIP
    """

    def __init__(self, name: BaselineName, program: Coda, samples: float = 1.0) -> None:
        super().__init__()
        if samples < 1.0 or (name == "single" and samples != 1.0):
            raise UsageError(f"Baseline {name} cannot take {samples:g} samples: single takes 1, the others 1 or more.")
        self.name = name if name == "single" else f"{name}@{samples:g}"
        self.samples = samples
        self.engine = program.engine
        self.sandbox = program.sandbox
        self.settings = sampling(program.settings, math.ceil(samples), _VERIFIERS[name])
        self.more = Coda(self.settings, engine=program.engine, sandbox=program.sandbox)
        self.fewer = self.more.with_settings(sampling(program.settings, math.floor(samples), _VERIFIERS[name]))

    async def asolve(self, problem: Problem) -> Solution:
        """Solve a problem, see `Coda.asolve`."""
        return await self._for(problem).asolve(problem)

    def solve(self, problem: Problem) -> Solution:
        """Solve a problem and wait for it."""
        return run_sync(self.asolve(problem))

    async def aforward(self, problem: Problem) -> dspy.Prediction:
        """Solve a problem as a DSPy module does."""
        return await self._for(problem).acall(problem=problem)

    def forward(self, problem: Problem) -> dspy.Prediction:
        """Solve a problem, for synchronous callers."""
        return run_sync(self.aforward(problem))

    def _for(self, problem: Problem) -> Coda:
        place = int.from_bytes(hashlib.sha256(problem.key.encode()).digest()[:8], "big") / 2**64
        return self.more if place < self.samples - math.floor(self.samples) else self.fewer


def sampling(settings: Settings, samples: int, verifier: Strategy) -> Settings:
    """Settings under which a program samples so many answers in words, all at once, and chooses one."""
    return Settings.parse(
        {
            **settings.model_dump(),
            "plan": False,
            "completions": 1,
            "max_rounds": 1,
            "tasks": {},
            "paths": ("reason",) * samples,
            "max_paths": samples,
            "quorum": samples,
            "max_refinements": 0,
            "reflect": False,
            "verifier": verifier,
            "written_tests": False,
        },
        where=f"A baseline of {samples} samples",
    )


def equal_samples(program: float, single: float) -> float:
    """How many single calls cost as many tokens as the program spends, for each problem on average; at least 1.

    Args:
        program: Tokens that the program spends on each problem.
        single: Tokens that the ``single`` baseline spends on each of the same problems.

    Raises:
        UsageError: The Engine reports no tokens.
    """
    if not program or not single:
        raise UsageError("Equal tokens cannot be reckoned: the Engine reports none, or nothing was measured.")
    return max(1.0, round(program / single, 2))
