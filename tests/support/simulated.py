"""A simulated model whose skill on every problem is known, for studying how effort is spent.

Nothing in it is tuned to a result. Its parameters come from figures outside it:

- How hard problems are: the chance that an attempt is right is drawn for each problem from a Beta distribution that has
  the pass@1 and the oracle (pass@k) of answers recorded from real models.
- How mistakes agree: a wrong attempt falls for the problem's one tempting answer with the chance that gives these
  recorded answers' majority vote; other wrong answers are all different.
- How the modes differ: words and programs have the same distribution, and ranks that correlate (a Gaussian copula).
- A judge sees the truth with the chance ``insight``. Else it works the problem out in words once more, and believes the
  attempt that has its answer. So does the reflector, which takes any attempt's answer where none has its own.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import optimize, special, stats

from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.engine.server import Server
from coda.program.engine.transport import Exchange, Outgoing
from coda.program.types import Execution, Problem, Usage


@dataclass(frozen=True)
class Figures:
    """What was recorded: ``k`` answers to each problem."""

    name: str
    k: int
    pass_at_1: float
    majority: float
    oracle: float


@dataclass(frozen=True)
class Difficulty:
    """How often attempts at a kind of problems are right, and how their mistakes agree.

    Attributes:
        a: First parameter of the Beta distribution of the chance to be right.
        b: The second.
        lure: The chance that a wrong attempt gives the problem's tempting answer.
    """

    a: float
    b: float
    lure: float


def fit(figures: Figures) -> Difficulty:
    """The difficulty that has these figures."""

    def oracle(size: float) -> float:
        a, b = size * figures.pass_at_1, size * (1 - figures.pass_at_1)
        return 1.0 - float(np.exp(special.betaln(a, b + figures.k) - special.betaln(a, b)))

    size = float(optimize.brentq(lambda s: oracle(s) - figures.oracle, 1e-3, 1e3))
    a, b = size * figures.pass_at_1, size * (1 - figures.pass_at_1)
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        # The more often mistakes agree, the worse the vote.
        low, high = (middle, high) if _majority(a, b, middle, figures.k) > figures.majority else (low, middle)
    return Difficulty(a, b, (low + high) / 2)


def _majority(a: float, b: float, lure: float, k: int, problems: int = 20_000) -> float:
    """How often the most frequent of ``k`` answers is right; among equals the first counts."""
    rng = np.random.default_rng(0)
    chance = rng.beta(a, b, problems)
    draws, tempted = rng.random((problems, k)), rng.random((problems, k)) < lure
    won = 0
    for p, drawn, falls in zip(chance, draws, tempted, strict=True):
        answers = [0 if d < p else 1 if fell else 2 + i for i, (d, fell) in enumerate(zip(drawn, falls, strict=True))]
        won += Counter(answers).most_common(1)[0][0] == 0
    return won / problems


@dataclass(frozen=True)
class Skill:
    """What the model can do with one problem."""

    answer: int
    tempting: int
    lure: float
    reason: float
    code: float


def population(kinds: Sequence[Difficulty], size: int, correlation: float, seed: int) -> dict[int, Skill]:
    """Problems of all kinds in equal parts, by number."""
    rng = np.random.default_rng(seed)
    ranks = special.ndtr(rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size))
    skills = {}
    for number, (reason, code) in enumerate(ranks):
        kind = kinds[number % len(kinds)]
        chances = stats.beta.ppf([reason, code], kind.a, kind.b)
        answer = int(rng.integers(100, 1000))
        skills[number] = Skill(answer, answer + 1, kind.lure, float(chances[0]), float(chances[1]))
    return skills


def problem_of(number: int) -> Problem:
    """The problem with this number, as the pipeline sees it."""
    return Problem(text=f"Simulated problem number {number}. What is its answer?")


JUDGING = ("Compare the attempts", "Two attempts at the problem", "Check this attempt")


@dataclass(frozen=True)
class Lengths:
    """Tokens of replies."""

    attempt: int
    plan_per_path: int = 60
    instruction: int = 60


class SimulatedModel:
    """A transport that answers every stage of the pipeline by what the model can do; nothing leaves the process.

    Args:
        skills: What it can do, by the problem's number.
        insight: The chance that a judge tells right from wrong without solving the problem.
        lengths: How long its replies are.
        seed: Of everything that it draws. The same request, asked for the n-th time, is answered the same.
    """

    address = "simulated"

    def __init__(self, skills: dict[int, Skill], insight: float, lengths: Lengths, seed: int) -> None:
        self.skills = skills
        self.insight = insight
        self.lengths = lengths
        self.seed = seed
        self._asked: Counter[str] = Counter()

    async def open(self) -> Server:
        return Server(address=self.address)

    async def check(self) -> None:
        """It is always there."""

    async def context(self) -> int | None:
        return None

    async def aclose(self) -> None:
        """Nothing is open."""

    async def send(self, request: Outgoing, exchange: Exchange, profile: Profile) -> Reply:
        exchange.sent = True
        system, text = (request.body["messages"][place]["content"] for place in (0, -1))
        text = str(text)
        number = int(re.search(r"problem number (\d+)", text)[1])  # type: ignore[index]
        key = f"{self.seed} {number} {hashlib.sha256(f'{system} {text}'.encode()).hexdigest()}"
        self._asked[key] += 1
        draw = random.Random(f"{key} {self._asked[key]}")
        said, tokens = self._answer(str(system), text, self.skills[number], draw)
        usage = Usage(calls=1, prompt_tokens=(len(system) + len(text)) // 4, completion_tokens=tokens)
        return Reply(text=said, usage=usage)

    def _answer(self, system: str, text: str, skill: Skill, draw: random.Random) -> tuple[str, int]:
        length = self.lengths.attempt
        if "devise several distinct" in system:
            wanted = int(re.search(r"Number of paths:\s*(\d+)", text)[1])  # type: ignore[index]
            lines = [f"{'code' if n % 2 == 0 else 'reason'}: way {draw.random():.6f}" for n in range(wanted)]
            return "\n".join(lines), wanted * self.lengths.plan_per_path
        if "Write a complete Python program" in system:
            return f"print({self._attempt(skill, skill.code, draw)})", length
        own = self._attempt(skill, skill.reason, draw)
        if any(words in system for words in JUDGING) and draw.random() < self.insight:
            own = skill.answer
        if "Split the problem" in system:
            return "It cannot be split.", self.lengths.plan_per_path
        if "Compare the attempts" in system:
            shown = [int(found) for found in re.findall(r"Answer: (\d+)", text)]
            return f"Answer: {own if own in shown or not shown else draw.choice(shown)}", length
        if "State the problem anew" in system:
            return "It is what it is.", self.lengths.plan_per_path
        if "Two attempts at the problem" in system:
            first, second = (int(found) for found in re.findall(r"Answer: (\d+)", text)[:2])
            better = "first" if own == first else "second" if own == second else draw.choice(["first", "second"])
            return f"Answer: {better}", length
        if "Check this attempt" in system:
            claimed = int(re.findall(r"Answer: (\d+)", text)[-1])
            return f"Answer: {'right' if own == claimed else 'wrong'}", length
        return f"Answer: {own}", length

    @staticmethod
    def _attempt(skill: Skill, chance: float, draw: random.Random) -> int:
        """An answer: the right one, the tempting one, or one of its own."""
        if draw.random() < chance:
            return skill.answer
        return skill.tempting if draw.random() < skill.lure else draw.randrange(10_000, 10_000_000)


class Calculator:
    """Stands in for the sandbox: the simulated programs are ``print(NUMBER)``, and there are many thousands of them."""

    available = True
    level = "full"

    async def run(self, program: str, **_: Any) -> Execution:
        """What the program prints."""
        return Execution(outcome="ok", stdout=program.removeprefix("print(").removesuffix(")"))

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def simulated(engine: Any, model: SimulatedModel) -> Any:
    """The Engine, answered by the model."""
    engine.transport = model
    return engine
