"""Tests by standard input and output. The expected output never enters the sandbox."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from coda.errors import UsageError
from coda.program.tools.results import valid
from coda.program.types import Execution, IOCase

_LONGEST_SHOWN = 500


Run = Callable[[IOCase], Awaitable[Execution]]


async def examine(run: Run, cases: Sequence[IOCase], tolerance: float | None) -> Execution:
    """Run the program on each case, up to the first that fails.

    Args:
        run: Runs it once.
        cases: At least one.
        tolerance: How far numbers may be off, absolutely or relative to the expected ones; ``None``: not at all.

    Returns:
        The last run, with the counts, and the seconds of all.

    Raises:
        UsageError: There is no case.
    """
    if not cases:
        raise UsageError("Tests by input and output need at least one case.")
    passed, seconds, peak = 0, 0.0, 0.0
    for number, case in enumerate(cases, start=1):
        execution = await run(case)
        seconds += execution.seconds
        peak = max(peak, execution.peak_memory_mb or 0.0)
        execution = _judged(execution, case, tolerance, f"Test {number} of {len(cases)}")
        if execution.outcome != "ok":
            break
        passed += 1
    counts = {"tests_passed": passed, "tests_total": len(cases), "seconds": seconds, "peak_memory_mb": peak}
    return execution.model_copy(update=counts)


def _judged(execution: Execution, case: IOCase, tolerance: float | None, name: str) -> Execution:
    if execution.outcome != "ok":
        story = f"{name} failed on the input:\n{_shown(case.stdin)}\n{execution.feedback}"
        return execution.model_copy(update={"feedback": valid(story)})
    if same(execution.stdout, case.expected, tolerance):
        return execution
    story = (
        f"{name} failed on the input:\n{_shown(case.stdin)}\n"
        f"expected:\n{_shown(case.expected)}\ngot:\n{_shown(execution.stdout)}"
    )
    return execution.model_copy(update={"outcome": "wrong", "feedback": valid(story)})


def same(got: str, expected: str, tolerance: float | None = None) -> bool:
    """Whether two outputs are the same, but for white space at line ends and, given a tolerance, small differences.

    With a tolerance the outputs are compared word by word.
    """
    if _lines(got) == _lines(expected):
        return True
    if tolerance is None:
        return False
    ours, theirs = got.split(), expected.split()
    return len(ours) == len(theirs) and all(_near(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))


def _lines(output: str) -> list[str]:
    return [line.rstrip() for line in output.rstrip().split("\n")]


def _near(got: str, expected: str, tolerance: float) -> bool:
    if got == expected:
        return True
    try:
        return math.isclose(float(got), float(expected), rel_tol=tolerance, abs_tol=tolerance)
    except ValueError:
        return False


def _shown(content: str) -> str:
    content = content.rstrip("\n")
    return content if len(content) <= _LONGEST_SHOWN else f"{content[:_LONGEST_SHOWN]} [… {len(content)} characters]"
