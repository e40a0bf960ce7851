"""What no compiled prompt may hold."""

from __future__ import annotations

import dspy
import pytest

from coda.data.benchmarks import Benchmark, Example
from coda.optimize.config import CompileConfig
from coda.optimize.guards import Guards
from coda.optimize.optimizers.student import Prompts, with_prompts
from coda.program.conductor import Coda
from coda.program.types import Problem

LONG = "A farmer has seventeen sheep and all but nine of them run away before noon. How many are left?"


def benchmark(split: str, *texts: str) -> Benchmark:
    examples = tuple(Example(id=f"{split}-{i}", problem=Problem(text=t), answer="1") for i, t in enumerate(texts))
    return Benchmark(name="b", examples=examples, split=split, digest=split)


GUARDS = Guards(
    benchmark("train", LONG, "What is 100 + 5?"),
    (benchmark("validation", "What is 200 + 5?"), benchmark("test", "What is 300 + 5?")),
    CompileConfig(prompt_tokens=100, demo_tokens=60),
)


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("Solve it with care, step by step, and state the answer.", ""),
        ("For example: a farmer has seventeen sheep, and all but nine of them run.", "copies from a training problem"),
        ("As in: what is 100 + 5?", "copies from a training problem"),
        ("Count the sheep of the farmer, seventeen or nine, before noon.", ""),
        ("word " * 200, "has about 280 tokens, and --prompt-tokens allows 100"),
    ],
)
def test_instructions_are_checked_for_copies_and_length(instruction: str, said: str) -> None:
    fault = GUARDS.fault(instruction)
    assert said in fault
    assert bool(said) == bool(fault)


def test_what_the_original_holds_it_may_go_on_to_hold() -> None:
    assert GUARDS.fault(f"{LONG} Begin.", LONG) == ""


def test_the_original_instruction_takes_the_place_of_a_copy() -> None:
    original = Coda()
    bad = with_prompts(original, Prompts({"planner.propose": LONG, "executor.reason": "Solve it."}))
    mended, caveats = GUARDS.mend(bad, original)
    assert mended.planner.propose.signature.instructions == original.planner.propose.signature.instructions
    assert mended.executor.reason.signature.instructions == "Solve it."
    assert len(caveats) == 1
    assert "planner.propose" in caveats[0]


@pytest.mark.parametrize("text", ["What is 200 + 5?", "what is  300 + 5"])
def test_demos_of_problems_that_are_measured_on_are_left_out(text: str) -> None:
    demos = [dspy.Example(problem=each, reasoning="so", answer="1") for each in (text, "What is 100 + 5?")]
    mended, caveats = GUARDS.mend(with_prompts(Coda(), Prompts(demos={"executor.reason": demos})), Coda())
    assert [demo.problem for demo in mended.executor.reason.demos] == ["What is 100 + 5?"]
    assert len(caveats) == 1


def test_a_candidate_without_fault_is_left_as_it_is() -> None:
    program = Coda()
    assert GUARDS.mend(program, program) == (program, [])


def test_demos_fit_into_their_limit_together() -> None:
    demos = [dspy.Example(problem=f"Is {n} prime?", reasoning="because " * 10, answer="1") for n in range(5)]
    mended, caveats = GUARDS.mend(with_prompts(Coda(), Prompts(demos={"executor.reason": demos})), Coda())
    assert mended.executor.reason.demos == demos[:2]
    assert "Only 2 of 5 demos of executor.reason fit into 60 tokens" in caveats[0]
