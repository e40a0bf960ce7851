"""Bootstrap random search over demos, out of DSPy's own bootstrapping and this project's evaluator.

DSPy's `BootstrapFewShotWithRandomSearch` does the same in one piece; here every candidate is a name, a seed and a run
of its own, so that each is measured pair by pair with the others, shows up in tracking, resumes, and never costs more
than the budget.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dspy
from dspy.teleprompt import BootstrapFewShot

from coda.data.benchmarks import Example
from coda.optimize.demos import Accept, Demos, demos_of, labelled, with_demos
from coda.program.conductor import Coda


@dataclass(frozen=True)
class Candidate:
    """A set of prompts under optimization.

    Attributes:
        name: ``labelled-3`` or ``bootstrapped-4``: how its demos came about, and their seed.
        demos: They, by predictor.
    """

    name: str
    demos: Demos


def candidates(program: Coda, train: Sequence[Example], *, count: int, k: int, seed: int) -> Iterator[Candidate]:
    """Make candidates one after the other; each is paid for only when it is asked for.

    The first has labelled demos, the second bootstrapped ones, and so on in turn. Where no training example carries a
    reference program, all are bootstrapped.

    Args:
        program: The student; its own demos are replaced.
        train: Training examples.
        count: How many candidates.
        k: Demos for each predictor.
        seed: The first seed; every candidate has the next one.
    """
    has_labels = bool(labelled(train, 1, seed))
    for index in range(count):
        own_seed = seed + index
        if has_labels and index % 2 == 0:
            yield Candidate(f"labelled-{own_seed}", labelled(train, k, own_seed))
        else:
            yield Candidate(f"bootstrapped-{own_seed}", bootstrapped(program, train, k=k, seed=own_seed))


def bootstrapped(program: Coda, train: Sequence[Example], *, k: int, seed: int) -> Demos:
    """Let a teacher solve training problems, and keep the calls that led to right answers.

    The teacher is the program itself with labelled demos, taken from examples that it is not asked to solve. A
    predictor that no right trace went through keeps the teacher's demos.
    """
    shuffled = list(train)
    random.Random(seed).shuffle(shuffled)
    given, asked = shuffled[: len(shuffled) // 3], shuffled[len(shuffled) // 3 :]
    teacher = with_demos(program, labelled(given, k, seed))
    trainset = [dspy.Example(problem=each.problem, example=each).with_inputs("problem") for each in asked]
    optimizer = BootstrapFewShot(metric=Accept(), max_bootstrapped_demos=k, max_labeled_demos=0, max_errors=len(asked))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        student = optimizer.compile(program, teacher=teacher, trainset=trainset)
    return {**demos_of(teacher), **demos_of(student)}
