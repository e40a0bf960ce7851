"""Programs: run in the sandbox against the visible and the hidden tests, up to the first failure."""

from __future__ import annotations

from coda.data.examples import Example
from coda.data.grading.grade import Grade
from coda.errors import SandboxError
from coda.program.tools.sandbox import RunLimits, Sandbox
from coda.program.types import Execution

LIMITS = RunLimits(timeout=15.0, memory_mb=512)
"""For all function tests together, and for each test by input and output."""


async def grade_code(example: Example, answer: str | None, sandbox: Sandbox, limits: RunLimits = LIMITS) -> Grade:
    """Grade a program.

    Raises:
        SandboxError: There is no sandbox, so that nothing can be graded.
    """
    if answer is None or not answer.strip():
        return Grade(score=0.0, feedback="There is no program.")
    execution = await _run(example, example.preamble + answer, sandbox, limits)
    if execution.outcome == "no-sandbox":
        raise SandboxError(f"Programs cannot be graded here. {sandbox.why}")
    if execution.outcome == "ok":
        return Grade(score=1.0, feedback=f"All {execution.tests_total} tests pass.")
    count = f"{execution.tests_passed or 0} of {execution.tests_total} tests passed before the first failure.\n"
    return Grade(score=0.0, feedback=f"{count if execution.tests_total else ''}{execution.feedback}".strip())


async def _run(example: Example, program: str, sandbox: Sandbox, limits: RunLimits) -> Execution:
    problem = example.problem
    if example.io:
        return await sandbox.run_io(program, example.io, float_tolerance=example.float_tolerance, limits=limits)
    tests = (*problem.tests, *example.hidden_tests)
    return await sandbox.run_tests(program, tests, entry_point=problem.entry_point, stop_early=True, limits=limits)
