"""Running a program that the Engine wrote for a problem, and saying what came of it."""

from __future__ import annotations

from coda.program.settings import Settings
from coda.program.tools.sandbox import RunLimits, Sandbox
from coda.program.types import Execution, Problem

NOTHING_PRINTED = "The program ran and printed nothing. It must print the answer."


async def try_program(sandbox: Sandbox, problem: Problem, program: str, settings: Settings) -> Execution:
    """Run a program: against the visible tests where the problem has some, else alone.

    A program that should compute an answer and prints nothing has failed, and its feedback says so.
    """
    limits = RunLimits(timeout=settings.exec_timeout, memory_mb=settings.exec_memory_mb)
    if problem.tests:
        return await sandbox.run_tests(program, problem.tests, entry_point=problem.entry_point, limits=limits)
    execution = await sandbox.run(program, limits=limits)
    if problem.task != "code" and execution.outcome == "ok" and not execution.stdout.strip():
        return execution.model_copy(update={"outcome": "error", "feedback": NOTHING_PRINTED})
    return execution


def succeeded(problem: Problem, execution: Execution) -> bool:
    """Whether a run gives no reason to correct the program."""
    return execution.outcome == "ok" or execution.outcome == "no-sandbox"
