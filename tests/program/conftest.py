"""A pipeline on a local HTTP engine whose replies depend on which stage asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from local_engine import Answer, LocalEngine

from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Settings
from coda.program.tools.sandbox import shared_sandbox

Reply = str | Answer | Callable[[str], str | Answer]

STAGES = {
    "Judge how hard": "plan",
    "Solve the problem step by step": "reason",
    "Write a complete Python program": "code",
    "Write the Python code": "function",
    "A program written for this problem failed": "repair",
    "Compare the attempts": "reconcile",
    "Compare the programs": "reconcile_programs",
    "Two attempts at the problem": "compare",
    "Split the problem": "decompose",
    "Solve one part": "part",
    "Put the answers of the parts": "combine",
    "The attempts at this problem do not convince": "restate",
    "Check this attempt": "judge",
    "Several programs were written": "inputs",
}


class Pipeline:
    """A program on a scripted engine.

    ``pipeline(Settings(...), code=["print(1)", "print(2)"], reason="2")`` answers each stage from its own script: one
    reply for all its requests, or a list of them in the order in which they come, or a function of the request's text.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.engine: LocalEngine

    def __call__(self, settings: Settings, **scripts: Reply | list[str | Answer]) -> Coda:
        waiting = {stage: list(script) for stage, script in scripts.items() if isinstance(script, list)}
        self.asked: list[str] = []

        def answer(messages: list[dict[str, Any]]) -> str | Answer:
            system = messages[0]["content"]
            stage = next(name for words, name in STAGES.items() if words in system)
            self.asked.append(stage)
            if stage in waiting:
                return waiting[stage].pop(0)
            script = scripts[stage]
            return script(messages[-1]["content"]) if callable(script) else script  # type: ignore[return-value]

        self.engine = self._stack.enter_context(LocalEngine(answer))
        config = EngineConfig(model="openai/test-model", api_base=self.engine.api_base, max_retries=0)
        engine = self._stack.enter_context(Engine(config))
        return Coda(settings, engine=engine)


@pytest.fixture
def pipeline() -> Iterator[Pipeline]:
    with ExitStack() as stack:
        yield Pipeline(stack)


@pytest.fixture
def sandboxed() -> None:
    """For tests whose programs must really run."""
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")


PLAIN = Settings(adapter="plain", plan=False, reflect=False, max_rounds=1)
"""Settings under which nothing is asked for but attempts, without any markers."""


@pytest.fixture
def plain() -> Settings:
    return PLAIN
