"""Every prompt as the Engine reads it, in every style: a change of wording shows in the diff of tests/program/golden.

After a change that is meant:  CODA_UPDATE_GOLDEN=1 pytest tests/program/test_golden.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import dspy
import pytest

from coda.program.adapters import SignatureClass, adapter_for
from coda.program.conductor import Coda
from coda.program.presentation import exhibit, exhibits, solved_parts, statement
from coda.program.settings import AdapterStyle, Settings
from coda.program.types import Attempt, Execution, Part, Problem
from coda.signatures.planning import PlannedPath, PlannedStep

GOLDEN = Path(__file__).parent / "golden"
STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)

PROBLEM = Problem(text="Which number is prime?", task="choice", choices=("51", "53", "57"))
TASK = Problem(text="Write double(n), which doubles n.", task="code", tests=("assert double(2) == 4",))
REASONED = Attempt(answer="A", reasoning="51 has no small divisors.")
COMPUTED = Attempt(
    answer="B", code="print('B')\n", execution=Execution(outcome="ok", stdout="B\n", exit_status=0), finish="ok"
)
TESTED = Attempt(
    answer="def double(n): return n",
    code="def double(n): return n",
    execution=Execution(outcome="wrong", feedback="double(2) gave 2, not 4", tests_passed=0, tests_total=1),
)

INPUTS: dict[str, dict[str, Any]] = {
    "planner.propose": {"problem": statement(PROBLEM), "number_of_paths": 4},
    "executor.reason": {"problem": statement(PROBLEM), "approach": "Look for divisors.\n1. Try 3\n2. Try 7"},
    "executor.code": {"problem": statement(PROBLEM), "approach": ""},
    "executor.function": {"problem": statement(TASK), "approach": ""},
    "executor.repair": {
        "problem": statement(TASK),
        "failed_program": "def double(n): return n",
        "feedback": "double(2) gave 2, not 4",
    },
    "executor.decompose": {"problem": statement(PROBLEM), "approach": "Test each number."},
    "executor.part": {
        "problem": statement(PROBLEM),
        "solved": solved_parts((Part(question="Is 51 prime?", answer="No, 3 divides it."),)),
        "part": "Is 53 prime?",
    },
    "executor.combine": {
        "problem": statement(PROBLEM),
        "solved": solved_parts((Part(question="Is 51 prime?", answer="No."), Part(question="And 53?", answer="Yes."))),
    },
    "reflector.reconcile": {"problem": statement(PROBLEM), "attempts": exhibits((REASONED, COMPUTED))},
    "reflector.reconcile_programs": {"problem": statement(TASK), "attempts": exhibits((TESTED, TESTED))},
    "reflector.restate": {"problem": statement(PROBLEM), "attempts": exhibits((REASONED, COMPUTED))},
    "verifier.judge": {"problem": statement(PROBLEM), "attempt": exhibit(COMPUTED)},
    "verifier.inputs": {"problem": statement(TASK), "function": "double"},
    "verifier.compare": {"problem": statement(PROBLEM), "first": exhibit(REASONED), "second": exhibit(COMPUTED)},
}

DEMOS = {
    "planner.propose": dspy.Example(
        problem="What is 2 + 2?",
        number_of_paths=1,
        difficulty="easy",
        paths=[
            PlannedPath(
                mode="code",
                approach="Add them up.",
                steps=[PlannedStep(action="add", confidence=0.95)],
                confidence=0.9,
            )
        ],
    ),
    "executor.code": dspy.Example(problem="What is 2 + 2?", approach="", program="print(2 + 2)"),
    "verifier.compare": dspy.Example(
        problem="What is 2 + 2?", first="Answer: 4", second="Answer: 5", reasoning="2 + 2 is 4.", better="first"
    ),
}

PREDICTORS = {name: predictor.signature for name, predictor in Coda(Settings()).named_predictors()}
TERSE = dict(Coda(Settings(written_reasoning=False)).named_predictors())


def cases() -> Iterator[Any]:
    for style in STYLES:
        for name, signature in PREDICTORS.items():
            yield pytest.param(style, name, signature, [], id=f"{style}.{name}")
            if TERSE[name].signature.fields.keys() != signature.fields.keys():
                yield pytest.param(style, name, TERSE[name].signature, [], id=f"{style}.{name}.thinks-by-itself")
            if name in DEMOS:
                yield pytest.param(style, name, signature, [DEMOS[name]], id=f"{style}.{name}.with-demo")


@pytest.mark.parametrize(("style", "name", "signature", "demos"), list(cases()))
def test_prompt_reads_as_agreed(
    style: AdapterStyle,
    name: str,
    signature: SignatureClass,
    demos: list[dspy.Example],
    request: pytest.FixtureRequest,
) -> None:
    messages = adapter_for(style).format(signature, demos, INPUTS[name])
    text = "\n".join(f"=== {message['role']} ===\n{message['content']}\n" for message in messages)
    file = GOLDEN / f"{request.node.callspec.id}.txt"
    if os.environ.get("CODA_UPDATE_GOLDEN"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def test_every_golden_file_has_its_prompt() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {case.id for case in cases()}
