"""Compiled programs made by hand, with everything in their prompts that could go wrong on the way to a file."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

import dspy

from coda.program.conductor import Coda
from coda.program.settings import AdapterStyle, Settings, StageSettings
from coda.signatures.planning import PlannedPath

NASTY = (
    "a {brace} {{ x }} {% if %} {# c #} {{problem}} {{#approach}} {\r\n\r\"quoted\" 'single' \\ ```` "
    "[[ ## answer ## ]] 🙂 \u2028 <b>&amp;{"
)
"""Text that means something to some format."""


def compiled(style: AdapterStyle = "fields", *, demos: bool = True, nasty: str = NASTY, **settings: object) -> Coda:
    """A program with tuned instructions and demos for every predictor, complete ones and one that lacks an input."""
    values = {"adapter": style, "executor_stage": StageSettings(temperature=0.2, max_tokens=700), **settings}
    program = Coda(Settings.model_validate(values))
    if not demos:
        return program
    predictors = dict(program.named_predictors())
    for name, predictor in predictors.items():
        predictor.signature = predictor.signature.with_instructions(f"Tuned for {name}.\n  Indented {nasty}")
    predictors["planner.propose"].demos = [
        dspy.Example(
            augmented=True,
            problem=nasty,
            number_of_paths=2,
            difficulty="easy",
            paths=[PlannedPath(mode="code", approach=nasty, steps=["one", nasty], confidence=0.25)],
        )
    ]
    predictors["executor.code"].demos = [
        dspy.Example(problem="What is 1 + 1?", program="print(1 + 1)"),
        dspy.Example(augmented=True, problem=nasty, approach="", program=f"print({nasty!r})\n"),
    ]
    predictors["verifier.compare"].demos = [
        dspy.Example(problem="?", first="Answer: 1", second=nasty, reasoning=nasty, better="first")
    ]
    for predictor in predictors.values():
        predictor.demos = predictor.demos or [dspy.Example(augmented=True, **_values(predictor.signature, nasty))]
    return program


def _values(signature: type[dspy.Signature], text: str) -> dict[str, object]:
    """A value of the right type for every field."""
    return {name: _value(field.annotation, text) for name, field in signature.fields.items()}


def _value(annotation: object, text: str) -> object:
    if get_origin(annotation) is Literal:
        return get_args(annotation)[0]
    if get_origin(annotation) is list:
        return [text, "two"]
    return 2 if annotation is int else text
