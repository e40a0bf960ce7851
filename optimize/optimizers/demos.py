"""Optimizers of demos: ``labeled``, ``bootstrap``, ``random-search``."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dspy.teleprompt import BootstrapFewShot

from coda.data.examples import Example
from coda.errors import UsageError
from coda.optimize.config import CompileConfig
from coda.optimize.demos import Demos, labelled, with_demos
from coda.optimize.metric import as_dspy
from coda.optimize.optimizers.session import Session
from coda.optimize.optimizers.student import Prompts, with_prompts
from coda.optimize.optimizers.workbench import Candidate, Plan, Workbench


class Labeled:
    """Demos from the reference programs of training rows, as `dspy.LabeledFewShot`, each only where it fits."""

    name = "labeled"
    needs: tuple[str, ...] = ()

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """It runs nothing."""
        return Plan(rollouts=0, validations=config.candidates)

    def check(self, train: Sequence[Example]) -> None:
        """It needs reference programs."""
        if not labelled(train, 1, 0):
            raise UsageError(
                "--optimizer labeled makes demos of reference programs, and no training row has one. "
                'Give rows a "program", or take another optimizer.'
            )

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """Sets of demos by different seeds."""
        first = bench.config.seed
        for seed in range(first, first + bench.config.candidates):
            yield labelled_set(bench, seed)


class Bootstrap:
    """One set of demos by `dspy.BootstrapFewShot`: calls of a teacher that led to right answers."""

    name = "bootstrap"
    needs: tuple[str, ...] = ()

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """At most every training problem that the teacher is asked."""
        return Plan(rollouts=_asked(train), validations=1)

    def check(self, train: Sequence[Example]) -> None:
        """Any problems do."""

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """The one set."""
        yield from bootstrapped_set(bench, bench.config.seed)


class RandomSearch:
    """Sets of demos, labelled and bootstrapped in turn; the one that is best on validation is chosen.

    `dspy.BootstrapFewShotWithRandomSearch` does the same in one piece. Here DSPy's bootstrapping makes the sets, and
    each is a candidate of its own: measured pair by pair, tracked, resumed.
    """

    name = "random-search"
    needs: tuple[str, ...] = ()

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """Every second set is bootstrapped; all are where there are no reference programs."""
        return Plan(rollouts=config.candidates * _asked(train), validations=config.candidates)

    def check(self, train: Sequence[Example]) -> None:
        """Any problems do."""

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """The sets."""
        yield from sets_in_turn(bench, bench.config.candidates)


def sets_in_turn(bench: Workbench, count: int, *, share: float = 1.0) -> Iterator[Candidate]:
    """So many sets of demos: the first labelled, the second bootstrapped, and so on, each with the next seed.

    Where no training row has a reference program, all are bootstrapped.

    Args:
        bench: What to work with.
        count: How many.
        share: The part of what is left of the budget that one set may take.
    """
    has_labels = bool(labelled(bench.train, 1, bench.config.seed))
    for index in range(count):
        seed = bench.config.seed + index
        if has_labels and index % 2 == 0:
            yield labelled_set(bench, seed)
        else:
            yield from bootstrapped_set(bench, seed, share=share)


def labelled_set(bench: Workbench, seed: int) -> Candidate:
    """Demos of reference programs."""
    demos = labelled(bench.train, bench.config.demos, seed)
    return Candidate(f"labelled-{seed}", with_demos(bench.program, _allowed(bench, demos)))


def bootstrapped_set(bench: Workbench, seed: int, *, share: float = 1.0) -> Iterator[Candidate]:
    """Let a teacher solve training problems, and keep the calls that led to right answers.

    The teacher is the program itself (or another model with its prompts) with labelled demos, taken from examples that
    it is not asked to solve. A predictor that no right trace went through keeps the teacher's demos. Nothing comes
    where the budget ends before all problems were asked.
    """
    session = Session(bench, bench.program, share=share)
    shuffled = list(bench.train)
    random.Random(seed).shuffle(shuffled)
    given, asked = shuffled[: len(shuffled) // 3], shuffled[len(shuffled) // 3 :]
    teacher = with_demos(bench.program, _allowed(bench, labelled(given, bench.config.demos, seed)))
    optimizer = BootstrapFewShot(
        metric=session.accepting,
        teacher_settings=session.teacher_settings,
        max_bootstrapped_demos=bench.config.demos,
        max_labeled_demos=0,
    )
    found = session.run(
        lambda: optimizer.compile(
            session.student(), teacher=session.student(teacher), trainset=[as_dspy(example) for example in asked]
        )
    )
    if found is not None:
        own = {name: predictor.demos for name, predictor in found.named_predictors() if predictor.demos}
        yield Candidate(f"bootstrapped-{seed}", with_prompts(teacher, Prompts(demos=own)))


def _allowed(bench: Workbench, demos: Demos) -> Demos:
    """Demos for those stages alone that may change."""
    only = bench.config.stages
    return {name: each for name, each in demos.items() if not only or name.partition(".")[0] in only}


def _asked(train: int) -> int:
    return train - train // 3
