"""The program as a whole: a DSPy module that solves, traces, copies, and tells those who watch."""

from __future__ import annotations

import copy
from typing import Any

import dspy
import pytest

from coda.errors import UsageError
from coda.program.conductor import Coda
from coda.program.events import watching
from coda.program.settings import Settings
from coda.program.types import Problem

PROBLEM = Problem(text="What is 6 * 7?")


def one(plain: Settings) -> Settings:
    return plain.model_copy(update={"paths": ("reason",), "quorum": 1})


def test_every_predictor_has_a_stable_name() -> None:
    assert [name for name, _ in Coda(Settings()).named_predictors()] == [
        "planner.propose",
        "executor.reason",
        "executor.code",
        "executor.function",
        "executor.repair",
        "executor.decompose",
        "executor.part",
        "executor.combine",
        "reflector.reconcile",
        "reflector.reconcile_programs",
        "reflector.restate",
        "verifier.compare",
        "verifier.judge",
        "verifier.inputs",
    ]


def test_an_engine_that_reasons_internally_is_not_asked_for_written_reasoning() -> None:
    program = Coda(Settings(written_reasoning=False))
    assert list(program.executor.reason.signature.output_fields) == ["answer"]
    assert list(program.verifier.compare.signature.output_fields) == ["better"]


def test_without_an_engine_it_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="No Engine"):
        Coda(Settings()).solve(PROBLEM)


def test_usage_equals_what_the_server_counted(pipeline: Any, plain: Settings) -> None:
    program = pipeline(plain.model_copy(update={"paths": ("reason",) * 3, "quorum": 3}), reason="Answer: 42")
    usage = program.solve(PROBLEM).usage
    server = pipeline.engine
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (
        server.requests,
        server.prompt_tokens,
        server.completion_tokens,
    )


def test_the_trace_holds_every_call_in_the_order_of_the_paths(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("reason",) * 3, "quorum": 3})
    program = pipeline(settings, reason=["Answer: 1", "Answer: 2", "Answer: 3"])
    with dspy.context(lm=program.engine.lm, trace=[]):
        prediction = program(problem=PROBLEM)
        trace = list(dspy.settings.trace)
    assert [step[0] is program.executor.reason for step in trace] == [True, True, True]
    assert [step[2].answer for step in trace] == [attempt.answer for attempt in prediction.solution.attempts]


def test_copies_share_the_engine_and_keep_their_own_demos(pipeline: Any, plain: Settings) -> None:
    program = pipeline(one(plain), reason="Answer: 42")
    twin = copy.deepcopy(program)
    other = program.deepcopy()
    other.executor.reason.demos = [dspy.Example(problem="1?", approach="", reasoning="r", answer="1")]
    assert twin.engine is other.engine is program.engine
    assert program.executor.reason.demos == []
    assert twin.solve(PROBLEM).answer == "42"


def test_other_settings_keep_instructions_and_demos(pipeline: Any, plain: Settings) -> None:
    program = pipeline(one(plain), reason="Answer: 42")
    program.executor.reason.demos = [dspy.Example(problem="1?", approach="", reasoning="r", answer="1")]
    signature = program.executor.reason.signature
    program.executor.reason.signature = signature.with_instructions("Solve the problem step by step. Be brief.")
    other = program.with_settings(program.settings.model_copy(update={"quorum": 2}))
    assert other.settings.quorum == 2
    assert other.executor.reason.demos == program.executor.reason.demos
    assert other.executor.reason.signature.instructions == "Solve the problem step by step. Be brief."


def test_watchers_hear_the_stages_in_their_order(pipeline: Any, plain: Settings) -> None:
    program = pipeline(one(plain), reason="Answer: 42")
    heard: list[str] = []
    with watching(lambda event: heard.append(event.kind)):
        program.solve(PROBLEM)
    assert heard == ["problem", "plan", "attempt", "verdict", "solution"]


def test_a_per_predictor_lm_is_the_one_that_is_asked(pipeline: Any, plain: Settings) -> None:
    program = pipeline(one(plain), reason="Answer: 42")
    first = pipeline.engine
    other = pipeline(one(plain), reason="Answer: 43")
    program.executor.reason.lm = other.engine.lm
    assert program.solve(PROBLEM).answer == "43"
    assert (first.requests, pipeline.engine.requests) == (0, 1)
