"""From a program to plain values and back, field by field and by name."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from typing import Any

import dspy
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from coda.errors import ArtifactError
from coda.optimize.artifact.documents import PredictorState, ProgramState
from coda.optimize.identity import fingerprint
from coda.program.adapters import SignatureClass
from coda.program.conductor import Coda
from coda.program.engine import Engine
from coda.program.tools.sandbox import Sandbox

BOOTSTRAPPED = "augmented"
"""DSPy's mark for a demo that it bootstrapped; the one thing in a demo, besides the fields, that is kept."""


def state_of(program: Coda) -> ProgramState:
    """The program as plain values. Its Engine, sandbox and models are not part of it.

    Raises:
        ArtifactError: Something in a predictor cannot be saved.
    """
    return ProgramState(
        settings=program.settings,
        predictors={name: _predictor_state(name, predictor) for name, predictor in program.named_predictors()},
    )


def program_of(state: ProgramState, *, engine: Engine | None = None, sandbox: Sandbox | None = None) -> Coda:
    """Build the program that a state describes.

    Raises:
        ArtifactError: The state is of a program with other predictors or other fields.
    """
    program = Coda(state.settings, engine=engine, sandbox=sandbox)
    predictors = dict(program.named_predictors())
    if odd := sorted(predictors.keys() ^ state.predictors.keys()):
        raise ArtifactError(f"It was made for a program with other predictors ({', '.join(odd)}). {_REMEDY}")
    for name, predictor in predictors.items():
        _apply(name, predictor, state.predictors[name])
    return program


_REMEDY = "Load it with the version of coda that its manifest names, or compile again."


def signature_hash(signature: SignatureClass) -> str:
    """Hash what must stay the same for instructions and demos to fit: names, roles and types of the fields."""
    roles = {"input": signature.input_fields, "output": signature.output_fields}
    return fingerprint(
        [[role, name, _shape(field.annotation)] for role in roles for name, field in roles[role].items()]
    )


def _shape(annotation: Any) -> Any:
    """A type as plain values that do not depend on the versions of any library."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {name: _shape(field.annotation) for name, field in annotation.model_fields.items()}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return ["Literal", *map(str, arguments)]
    if origin is not None:
        return [getattr(origin, "__name__", str(origin)), *map(_shape, arguments)]
    return getattr(annotation, "__name__", str(annotation))


def _predictor_state(name: str, predictor: dspy.Predict) -> PredictorState:
    if predictor.config:
        raise ArtifactError(
            f"{name} has sampling options of its own ({', '.join(predictor.config)}), which an artefact does not hold. "
            "Set them in the program's settings."
        )
    signature = predictor.signature
    return PredictorState(
        signature=signature_hash(signature),
        instructions=signature.instructions,
        fields={field: info.json_schema_extra["desc"] for field, info in signature.fields.items()},
        demos=tuple(_plain_demo(name, signature, demo) for demo in predictor.demos),
    )


def _plain_demo(name: str, signature: SignatureClass, demo: Mapping[str, Any]) -> dict[str, JsonValue]:
    """A demo's own fields; whatever else it carries (a training example may carry its answer) stays behind."""
    values = {key: demo[key] for key in demo.keys() if key in signature.fields or key == BOOTSTRAPPED}  # noqa: SIM118
    try:
        plain: dict[str, JsonValue] = to_jsonable_python(values)
    except PydanticSerializationError as error:
        raise ArtifactError(f"A demo of {name} holds a value that is no JSON ({error}). Give it as text.") from error
    return plain


def _apply(name: str, predictor: dspy.Predict, state: PredictorState) -> None:
    signature = predictor.signature
    if state.signature != signature_hash(signature) or state.fields.keys() != signature.fields.keys():
        now, then = ", ".join(signature.fields), ", ".join(state.fields)
        change = f"were {then} and are now {now}" if now != then else "are of other types now"
        raise ArtifactError(f"The prompts of {name} were made for another signature: its fields {change}. {_REMEDY}")
    for key, description in state.fields.items():
        if description != signature.fields[key].json_schema_extra["desc"]:
            signature = signature.with_updated_fields(key, desc=description)
    predictor.signature = signature.with_instructions(state.instructions)
    predictor.demos = [_demo(name, signature, values) for values in state.demos]


def _demo(name: str, signature: SignatureClass, values: Mapping[str, JsonValue]) -> dspy.Example:
    if unknown := sorted(values.keys() - signature.fields.keys() - {BOOTSTRAPPED}):
        raise ArtifactError(
            f"A demo of {name} holds fields that its signature has not: {', '.join(unknown)}. {_REMEDY}"
        )
    typed = {
        key: _typed(value, signature.fields[key].annotation) if key in signature.fields else value
        for key, value in values.items()
    }
    return dspy.Example(**typed)


def _typed(value: JsonValue, annotation: Any) -> Any:
    """The value that was saved: of the field's type where its JSON is that of such a value, else as it is."""
    if annotation is str:
        return value
    try:
        typed = TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return value
    return typed if json.dumps(to_jsonable_python(typed)) == json.dumps(value) else value
