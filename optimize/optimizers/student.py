"""The program as DSPy's optimizers see it: only the predictors that may change, and every run counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import dspy

from coda.errors import CodaError, EngineError
from coda.optimize.demos import Demos
from coda.optimize.optimizers.gate import Gate
from coda.program.adapters import SALVAGED
from coda.program.conductor import Coda
from coda.program.types import Problem


@dataclass(frozen=True)
class Prompts:
    """What an optimizer may change, by predictor.

    Attributes:
        instructions: The instruction of each.
        demos: The demos of each.
    """

    instructions: dict[str, str] = field(default_factory=dict)
    demos: Demos = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Sixteen hex digits of the content's hash."""
        shown = {name: [repr(sorted(demo.items())) for demo in demos] for name, demos in self.demos.items() if demos}
        return hashlib.sha256(json.dumps([self.instructions, shown], sort_keys=True).encode()).hexdigest()[:16]


def prompts_of(predictors: Iterable[tuple[str, dspy.Predict]]) -> Prompts:
    """The prompts of these predictors now."""
    pairs = list(predictors)
    return Prompts(
        {name: predictor.signature.instructions for name, predictor in pairs},
        {name: list(predictor.demos) for name, predictor in pairs},
    )


def with_prompts(program: Coda, prompts: Prompts) -> Coda:
    """A copy of the program with these prompts; LMs, settings and fields stay its own.

    Demos that lack an output, or whose reply had to be salvaged, are left out: they would teach that.
    """
    copy: Coda = program.deepcopy()
    for name, predictor in copy.named_predictors():
        if name in prompts.instructions:
            predictor.signature = predictor.signature.with_instructions(prompts.instructions[name])
        if name in prompts.demos:
            predictor.demos = [demo for demo in prompts.demos[name] if complete(predictor.signature, demo)]
    return copy


def complete(signature: Any, demo: dspy.Example) -> bool:
    """Whether a demo shows all outputs, as the model itself wrote them."""
    return not demo.get(SALVAGED) and all(demo.get(name) not in (None, "", []) for name in signature.output_fields)


class Student(dspy.Module):
    """A program of which only some predictors can be seen, and therefore changed.

    DSPy's own way to freeze (``_compiled``) works on whole sub-modules and changes what is saved. Here the others are
    simply not shown. Each copy gets signatures of its own: some optimizers write into the class.

    Args:
        program: The program; it is not changed.
        names: The predictors that may change.
        gate: What each run passes.
    """

    def __init__(self, program: Coda, names: Sequence[str], gate: Gate) -> None:
        super().__init__()
        self.program: Coda = program.deepcopy()
        self.names = tuple(names)
        self.gate = gate
        for _, predictor in self.named_parameters():
            predictor.signature = predictor.signature.with_instructions(predictor.signature.instructions)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """The predictors that may change, under the program's own names."""
        return [(name, predictor) for name, predictor in self.program.named_predictors() if name in self.names]

    def forward(self, problem: Problem) -> dspy.Prediction:
        """Run the program; the prediction also says with which prompts (``prompts``)."""
        self.gate.begin_rollout()
        prompts = prompts_of(self.named_predictors())
        try:
            with self.gate.spending():
                found = self.program(problem=problem)
        except EngineError:
            raise
        except CodaError as error:  # a set-up that cannot work must not become a score of 0
            self.gate.halt(error)
            raise
        return dspy.Prediction(answer=found.answer, solution=found.solution, prompts=prompts)

    def deepcopy(self) -> Self:
        """A copy with the same Engine and gate, uncompiled and without what optimizers attach."""
        return type(self)(self.program, self.names, self.gate)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.deepcopy()
