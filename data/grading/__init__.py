"""Graders: compare an answer with the reference."""

from __future__ import annotations

from coda.data.examples import Example
from coda.data.grading.choice import grade_choice
from coda.data.grading.code import grade_code
from coda.data.grading.grade import Grade
from coda.data.grading.math import grade_math
from coda.data.grading.text import grade_text
from coda.program.concurrency import run_sync
from coda.program.tools.sandbox import Sandbox, shared_sandbox

__all__ = ["Grade", "agrade", "grade"]


async def agrade(example: Example, answer: str | None, *, sandbox: Sandbox | None = None) -> Grade:
    """Grade an answer as its problem's task wants it.

    Args:
        example: The problem with its reference.
        answer: The answer as extracted (`coda.program.answers.extract`); ``None`` where there is none.
        sandbox: Where programs run; by default the process's own.

    Raises:
        SandboxError: A program is to be graded, and there is no sandbox.
    """
    task = example.problem.task
    if task == "code":
        return await grade_code(example, answer, sandbox or shared_sandbox())
    if task == "choice":
        return await grade_choice(example, answer)
    return await (grade_math if task == "math" else grade_text)(example, answer)


def grade(example: Example, answer: str | None, *, sandbox: Sandbox | None = None) -> Grade:
    """`agrade`, for callers that are not async."""
    return run_sync(agrade(example, answer, sandbox=sandbox))
