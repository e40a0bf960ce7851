"""Programs: run in the sandbox against the hidden tests, up to the first failure; without any, the visible ones."""

from __future__ import annotations

import asyncio

from coda.data.examples import Example
from coda.data.grading.grade import Grade
from coda.data.livecodebench import unseal
from coda.errors import SandboxError
from coda.program.concurrency import in_default_pool
from coda.program.tools.sandbox import RunLimits, Sandbox
from coda.program.types import Execution

LIMITS = RunLimits(timeout=15.0, memory_mb=512)
"""For all function tests together, and for each test by input and output."""
TOTAL_SECONDS = 120.0
"""For all tests of one program, however many there are."""


async def grade_code(example: Example, answer: str | None, sandbox: Sandbox, limits: RunLimits = LIMITS) -> Grade:
    """Grade a program.

    Raises:
        SandboxError: There is no sandbox, so that nothing can be graded.
    """
    if answer is None or not answer.strip():
        return Grade(score=0.0, feedback="There is no program.")
    try:
        async with asyncio.timeout(TOTAL_SECONDS):
            execution = await _run(example, example.preamble + answer, sandbox, limits)
    except TimeoutError:
        return Grade(score=0.0, feedback=f"The tests together did not end within {TOTAL_SECONDS:g} seconds.")
    if execution.outcome == "no-sandbox":
        raise SandboxError(f"Programs cannot be graded here. {sandbox.why}")
    if execution.outcome == "ok":
        return Grade(score=1.0, feedback=f"All {execution.tests_total} tests pass.")
    count = f"{execution.tests_passed or 0} of {execution.tests_total} tests passed before the first failure.\n"
    return Grade(score=0.0, feedback=f"{count if execution.tests_total else ''}{execution.feedback}".strip())


async def _run(example: Example, program: str, sandbox: Sandbox, limits: RunLimits) -> Execution:
    hidden, cases = example.hidden_tests, example.io
    if example.sealed_tests:
        more_tests, more_cases = await in_default_pool(unseal, example.sealed_tests)
        hidden, cases = (*hidden, *more_tests), (*cases, *more_cases)
    if cases:
        return await sandbox.run_io(program, cases, float_tolerance=example.float_tolerance, limits=limits)
    tests = hidden or example.problem.tests
    entry_point = example.problem.entry_point
    return await sandbox.run_tests(program, tests, entry_point=entry_point, stop_early=True, limits=limits)
