"""Running a program that the Engine wrote for a problem, and saying what came of it."""

from __future__ import annotations

from coda.program.answers import extract
from coda.program.presentation import shorten
from coda.program.settings import Settings
from coda.program.tools.sandbox import RunLimits, Sandbox
from coda.program.types import Execution, Problem
from coda.program.visible import VisibleTests, visible_tests

NOTHING_PRINTED = "The program ran and printed nothing. It must print the answer."

LONGEST_FEEDBACK = 1500
"""Characters of feedback that the Engine is shown for one run."""


async def try_program(sandbox: Sandbox, problem: Problem, program: str, settings: Settings) -> Execution:
    """Run a program: against the visible tests of a code problem, else for the answer that it prints.

    A program that should compute an answer and prints nothing, or nothing that can be the answer, has failed; its
    feedback says so.
    """
    limits = run_limits(settings)
    tests = visible_tests(problem)
    if tests:
        execution = await _tested(sandbox, program, tests, problem.entry_point, limits)
    else:
        execution = await sandbox.run(program, limits=limits)
    return read_run(problem, execution)


def run_limits(settings: Settings) -> RunLimits:
    """What one run of a program may use."""
    return RunLimits(timeout=settings.exec_timeout, memory_mb=settings.exec_memory_mb)


def read_run(problem: Problem, execution: Execution) -> Execution:
    """What a run means for the problem: whether it gave an answer, and feedback that is short enough to be shown."""
    if problem.task != "code" and execution.outcome == "ok":
        execution = _with_answer(problem, execution)
    return execution.model_copy(update={"feedback": shorten(execution.feedback, LONGEST_FEEDBACK)})


def succeeded(execution: Execution) -> bool:
    """Whether a run gives no reason to correct the program."""
    return execution.outcome == "ok" or execution.outcome == "no-sandbox"


async def _tested(
    sandbox: Sandbox, program: str, tests: VisibleTests, entry_point: str | None, limits: RunLimits
) -> Execution:
    """Run all tests there are; of the two kinds, the one that fails tells its story."""
    runs = []
    if tests.asserts:
        runs.append(await sandbox.run_tests(program, tests.asserts, entry_point=entry_point, limits=limits))
    if tests.cases and (not runs or runs[0].outcome == "ok"):
        runs.append(await sandbox.run_io(program, tests.cases, limits=limits))
    passed = sum(run.tests_passed or 0 for run in runs)
    total = sum(run.tests_total or 0 for run in runs) + (len(tests.cases) if tests.asserts and len(runs) == 1 else 0)
    return runs[-1].model_copy(update={"tests_passed": passed, "tests_total": total or None})


def _with_answer(problem: Problem, execution: Execution) -> Execution:
    """A run whose output is no answer to the problem has failed."""
    printed = execution.stdout.strip()
    if not printed:
        return execution.model_copy(update={"outcome": "error", "feedback": NOTHING_PRINTED})
    if extract(execution.stdout, problem.task, problem.choices) is not None:
        return execution
    wanted = "the letter of one of the options" if problem.task == "choice" else "the answer"
    feedback = f"The program printed {shorten(printed, 300)!r}. It must print {wanted}, and nothing else."
    return execution.model_copy(update={"outcome": "wrong", "feedback": feedback})
