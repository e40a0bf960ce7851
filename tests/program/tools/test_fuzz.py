"""Whatever program and whatever test comes, a result comes out, or a `SandboxError`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coda.errors import SandboxError
from coda.program.concurrency import run_sync
from coda.program.tools.sandbox import IOCase, RunLimits, Sandbox
from coda.program.types import Execution, Outcome

pytestmark = pytest.mark.sandbox

LIMITS = RunLimits(timeout=1.0, memory_mb=96, output_bytes=2000, processes=8)

PARTS = tomllib.loads((Path(__file__).parent / "fuzz.toml").read_text("utf-8"))
SOUP = st.lists(st.sampled_from([*PARTS["words"], "\ud800"]), max_size=25).map(" ".join)
LINES = st.lists(st.sampled_from(PARTS["lines"]), max_size=4).map("\n".join)
PROGRAMS = st.one_of(SOUP, LINES, st.text(max_size=60))
TESTS = st.lists(st.one_of(st.sampled_from(PARTS["tests"]), SOUP), max_size=4)
ENTRY = st.one_of(
    st.none(), st.sampled_from(["f", "check", "candidate", "print", "no_such", "", "f.g", "__name__", "é"])
)

COMMON = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow], "deadline": None}


def is_result(execution: Execution) -> bool:
    """Whether it is a whole result, and can be recorded."""
    Execution.model_validate_json(execution.model_dump_json())
    assert execution.outcome in get_args(Outcome)
    assert execution.outcome != "no-sandbox"
    assert (execution.feedback == "") == (execution.outcome == "ok")
    assert len(execution.stdout) <= LIMITS.output_bytes + 50
    assert execution.seconds < LIMITS.timeout + 5
    if execution.tests_total is not None:
        assert 0 <= (execution.tests_passed or 0) <= execution.tests_total
        assert execution.outcome != "ok" or execution.tests_passed == execution.tests_total
    return True


def examine(sandbox: Sandbox, program: str, tests: list[str], entry: str | None) -> None:
    async def everything() -> None:
        with contextlib.suppress(SandboxError):
            assert is_result(await sandbox.run(program, stdin=program, limits=LIMITS))
            assert is_result(await sandbox.run_tests(program, tests, entry_point=entry, limits=LIMITS))
            assert is_result(await sandbox.run_io(program, [IOCase(program, program)], limits=LIMITS))

    run_sync(everything())


@settings(max_examples=60, **COMMON)  # type: ignore[arg-type]
@given(PROGRAMS, TESTS, ENTRY)
def test_programs_and_tests_end_in_a_result(
    sandbox: Sandbox, program: str, tests: list[str], entry: str | None
) -> None:
    examine(sandbox, program, tests, entry)


@pytest.mark.slow
@pytest.mark.skipif("CODA_LONG_TESTS" not in os.environ, reason="takes minutes: set CODA_LONG_TESTS=1")
@settings(max_examples=1500, **COMMON)  # type: ignore[arg-type]
@given(PROGRAMS, TESTS, ENTRY)
def test_many_programs_and_tests_end_in_a_result(
    sandbox: Sandbox, program: str, tests: list[str], entry: str | None
) -> None:
    examine(sandbox, program, tests, entry)


@settings(max_examples=15, **COMMON)  # type: ignore[arg-type]
@given(st.one_of(SOUP, st.text(max_size=40)))
def test_sources_for_a_compiler_end_in_a_result(sandbox: Sandbox, program: str) -> None:
    with contextlib.suppress(SandboxError):
        execution = asyncio.run(sandbox.run(program, language="c", limits=LIMITS))
        Execution.model_validate_json(execution.model_dump_json())
