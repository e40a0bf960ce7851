"""The rules by which signatures are written; adapters, demos and exports rely on them."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType

import dspy
import pytest

import coda.signatures
from coda.program.conductor import Coda
from coda.program.settings import Settings

MODULES = [import_module(f"coda.signatures.{found.name}") for found in pkgutil.iter_modules(coda.signatures.__path__)]


def defined_in(module: ModuleType) -> list[type[dspy.Signature]]:
    found = vars(module).values()
    return [
        each
        for each in found
        if inspect.isclass(each) and issubclass(each, dspy.Signature) and each.__module__ == module.__name__
    ]


SIGNATURES = [signature for module in MODULES for signature in defined_in(module)]


def test_every_predictor_has_a_signature_of_its_own() -> None:
    used = [predictor.signature for _, predictor in Coda(Settings()).named_predictors()]
    assert sorted(each.__name__ for each in used) == sorted(each.__name__ for each in SIGNATURES)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_problem_comes_first(signature: type[dspy.Signature]) -> None:
    assert next(iter(signature.input_fields)) == "problem"


@pytest.mark.parametrize("signature", SIGNATURES)
def test_inputs_are_text_or_numbers_which_adapters_insert_as_they_are(signature: type[dspy.Signature]) -> None:
    assert {field.annotation for field in signature.input_fields.values()} <= {str, int}


@pytest.mark.parametrize("signature", SIGNATURES)
def test_last_output_is_the_one_that_matters(signature: type[dspy.Signature]) -> None:
    assert list(signature.output_fields)[-1] in {
        "answer",
        "better",
        "calls",
        "parts",
        "paths",
        "program",
        "restatement",
        "verdict",
    }


@pytest.mark.parametrize("signature", SIGNATURES)
def test_what_matters_is_described(signature: type[dspy.Signature]) -> None:
    name = list(signature.output_fields)[-1]
    assert signature.output_fields[name].json_schema_extra["desc"] != f"${{{name}}}"


@pytest.mark.parametrize("signature", SIGNATURES)
def test_instruction_is_the_docstring_ends_as_a_sentence_and_is_short(signature: type[dspy.Signature]) -> None:
    assert signature.instructions == inspect.cleandoc(signature.__doc__ or "")
    assert signature.instructions.endswith(".")
    assert len(signature.instructions) < 600
