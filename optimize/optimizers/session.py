"""One run of a DSPy optimizer: its student, its metric, its LMs, and the gate that all of them stand behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import dspy

from coda.errors import BudgetExceeded, CodaError
from coda.optimize.demos import labelled, with_demos
from coda.optimize.metric import Accepting, StageMetric, as_dspy
from coda.optimize.optimizers.gate import Gate, GatedLM, Halted
from coda.optimize.optimizers.quiet import patiently, quietly
from coda.optimize.optimizers.student import Student, prompts_of, with_prompts
from coda.optimize.optimizers.trials import Noting, Trials
from coda.optimize.optimizers.workbench import Candidate, Workbench
from coda.program.adapters import adapter_for
from coda.program.concurrency import run_sync
from coda.program.conductor import Coda
from coda.program.engine.budget import Budget

T = TypeVar("T")

LOOK = 6
"""Training problems on which it is seen which predictors take part at all."""

MANY = 10**9


class Session:
    """One run of an optimizer.

    Args:
        bench: What it works with.
        program: The program to start from.
        only: Stages whose predictors may change; all where it is empty.
        share: The part of what is left of the budget, and of the rollouts, that it may use.

    Attributes:
        train: The training examples, shuffled by the seed, as DSPy wants them.
        metric: The metric, which notes all that is tried.
        accepting: The metric as bootstrapping wants it.
        names: The predictors that may change.
    """

    def __init__(self, bench: Workbench, program: Coda, *, only: Sequence[str] = (), share: float = 1.0) -> None:
        config = bench.config
        self.bench = bench
        self.program = program
        self.gate = Gate((bench.budget, Budget(bench.allowance(share))), max(1, int(config.rollouts * share)))
        self.lm = GatedLM(program.own_engine, self.gate)
        self.trials = Trials()
        shuffled = list(bench.train)
        random.Random(config.seed).shuffle(shuffled)
        self.train = [as_dspy(example) for example in shuffled]
        self._metric = StageMetric(
            bench.train,
            sandbox=program.sandbox,
            token_cost=config.token_cost,
            by_stage=config.stage_feedback,
        )
        self.metric = Noting(self._metric, self.trials, self.gate)
        self.accepting = Noting(Accepting(self._metric), self.trials, self.gate)
        self._all = [name for name, _ in program.named_predictors()]
        self._only = tuple(only or config.stages)
        self.names: list[str] = [name for name in self._all if self._may_change(name)]

    @property
    def threads(self) -> int:
        """Problems worked on at once."""
        return self.bench.config.concurrency

    @property
    def halves(self) -> tuple[list[dspy.Example], list[dspy.Example]]:
        """The training problems in two parts: to learn from, and to choose by; validation is for the finalists."""
        middle = max(1, len(self.train) // 2)
        return self.train[:middle], self.train[middle:] or self.train[:middle]

    @property
    def rollouts(self) -> int:
        """How many problems it may still run."""
        return max(1, self.gate.rollouts - self.gate.made)

    @property
    def reflection_lm(self) -> GatedLM:
        """What writes instructions."""
        return self.lm if self.bench.reflection is None else GatedLM(self.bench.reflection, self.gate)

    @property
    def teacher_settings(self) -> dict[str, Any]:
        """DSPy's settings under which demos are made."""
        return {} if self.bench.teacher is None else {"lm": GatedLM(self.bench.teacher, self.gate)}

    def student(self, program: Coda | None = None) -> Student:
        """A program as DSPy's optimizer may see it."""
        return Student(program or self.program, self.names, self.gate)

    def teacher(self) -> Student:
        """The program with labelled demos, where there are any: without them a weak Engine gets nothing right."""
        config = self.bench.config
        return self.student(with_demos(self.program, labelled(self.bench.train, config.demos, config.seed)))

    def look(self) -> None:
        """Find out which predictors take part, by running a few problems; the others are left as they are.

        A predictor that no problem went through would be changed blindly, and each change be paid for.
        """
        seen: set[str] = set()

        def run(example: dspy.Example) -> None:
            student = Student(self.program, self._all, self.gate)
            names = {id(predictor): name for name, predictor in student.named_predictors()}
            with dspy.context(trace=[]):
                student(problem=example.problem)
                seen.update(names[id(step[0])] for step in dspy.settings.trace if id(step[0]) in names)

        each_alone = dspy.Parallel(num_threads=self.threads, access_examples=False, disable_progress_bar=True)
        each_alone([(run, example) for example in self.train[:LOOK]])
        self.names = [name for name in self.names if name in seen] or self.names

    def run(self, work: Callable[[], T]) -> T | None:
        """Run an optimizer's work behind the gate.

        Returns:
            What it returned; ``None`` where it was halted, or failed. What it tried is in ``trials`` all the same.

        Raises:
            CodaError: The Engine is down, or nothing can be measured here.
        """
        settings = {"lm": self.lm, "adapter": adapter_for("fields"), "max_errors": MANY, "num_threads": self.threads}
        try:
            with patiently(), quietly(), dspy.context(**settings):
                return work()
        except Halted as halted:
            self._ended(halted)
        except CodaError:
            raise
        except Exception as error:  # an optimizer that fails has cost much, and what it tried is worth having
            if self.gate.halted is not None:
                self._ended(self.gate.halted)
            else:
                self.bench.ended.append(f"The optimizer failed: {type(error).__name__}: {error}")
        finally:
            self.gate.shut()
            run_sync(self.program.own_engine.settled())
        return None

    def finalists(self, name: str, result: Any = None) -> Iterator[Candidate]:
        """The optimizer's own choice, then the best of what it tried, each once.

        Args:
            name: The optimizer's.
            result: What it returned.
        """
        start = prompts_of(self.student().named_predictors())
        found = [] if result is None else [prompts_of(result.named_predictors())]
        found += self.trials.best(self.bench.config.finalists + 1, but=start)
        distinct = {prompts.key: prompts for prompts in reversed(found) if prompts.key != start.key}
        chosen = list(reversed(distinct.values()))[: self.bench.config.finalists]
        for number, prompts in enumerate(chosen, start=1):
            yield Candidate(f"{name}-{number}", with_prompts(self.program, prompts))

    def _may_change(self, name: str) -> bool:
        return not self._only or name.partition(".")[0] in self._only

    def _ended(self, halted: Halted) -> None:
        if isinstance(halted.error, BudgetExceeded):
            self.bench.ended.append(f"The optimizer has used up its part of the budget. ({halted.error})")
        elif halted.error is not None:
            raise halted.error
