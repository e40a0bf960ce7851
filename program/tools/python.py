"""Tests of a Python program's functions: the program in one job, the tests in another, the verdict from the second.

The program's job holds no expected value and no channel for a verdict. What its functions return reaches the tests as
plain data (see `coda.program.tools.guest.plain`), so neither a patched builtin, nor an object that equals everything,
nor a printed success, nor leaving with status 0 passes a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coda.program.tools import results
from coda.program.tools.job import Ended, Job, RunLimits
from coda.program.tools.pipes import Tap
from coda.program.tools.template import Template
from coda.program.types import Execution, Isolation, Outcome

_LARGEST_VERDICT = 1 << 20
_GRACE_SECONDS = 0.5


@dataclass(frozen=True)
class Verdict:
    """What the tests said.

    Attributes:
        total: Assertions.
        passed: Those that held.
        failures: What to tell about the others.
        load_error: Why the program did not get as far as the tests.
        gone: Whether it ended before they did.
    """

    total: int = 0
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    load_error: str | None = None
    gone: bool = False


@dataclass(frozen=True)
class Tests:
    """What a program is tested with.

    Attributes:
        tests: Python statements, usually ``assert``.
        entry_point: The function that they are about, where they do not name it.
        stop_early: Stop at the first failure.
    """

    tests: Sequence[str]
    entry_point: str | None = None
    stop_early: bool = False


async def examine(template: Template, program: str, tests: Tests, limits: RunLimits, isolation: Isolation) -> Execution:
    """Run the tests against the program.

    Raises:
        SandboxError: A job could not be started.
    """
    serve = {"role": "serve", "program": program}
    judge = {
        "role": "judge",
        "tests": list(tests.tests),
        "entry_point": tests.entry_point,
        "stop_early": tests.stop_early,
    }
    with contextlib.ExitStack() as stack:
        verdict_tap = Tap(_LARGEST_VERDICT, lambda: None)
        stack.callback(verdict_tap.close)
        outside, inside = socket.socketpair()
        with outside, inside:
            tested = Job(template, serve, limits, extra=[inside.fileno()])
            stack.callback(tested.discard)
            testing = Job(template, judge, limits, extra=[outside.fileno(), verdict_tap.inner])
            stack.callback(testing.discard)
            verdict_tap.close_inner()
        program_ended, tests_ended = await _both(tested, testing)
        verdict_tap.drain()
        verdict = _parsed(verdict_tap.data)
    return _execution(program_ended, tests_ended, verdict, limits, isolation)


async def _both(tested: Job, testing: Job) -> tuple[Ended, Ended]:
    """Run both; when the tests have ended, the program gets a moment to write what it has buffered."""
    running = [asyncio.ensure_future(tested.run()), asyncio.ensure_future(testing.run())]
    try:
        tests_ended = await running[1]
        await asyncio.wait(running[:1], timeout=_GRACE_SECONDS)
        if not running[0].done():
            tested.stop(None)
        return await running[0], tests_ended
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _parsed(data: bytes) -> Verdict | None:
    try:
        content: dict[str, Any] = json.loads(data)
        return Verdict(**content)
    except (ValueError, TypeError):
        return None


def _execution(
    program: Ended, tests: Ended, verdict: Verdict | None, limits: RunLimits, isolation: Isolation
) -> Execution:
    stderr = results.text(program.stderr, limits, program.reason)
    outcome, feedback = _judged(program, tests, verdict, limits, stderr)
    return Execution(
        outcome=outcome,
        stdout=results.text(program.stdout, limits, program.reason),
        stderr=stderr,
        exit_status=results.exit_status(program),
        feedback=results.valid(feedback),
        tests_passed=verdict.passed if verdict is not None else 0,
        tests_total=verdict.total if verdict is not None else None,
        seconds=max(program.seconds, tests.seconds),
        peak_memory_mb=program.peak_mb,
        truncated=program.reason == "output",
        isolation=isolation,
    )


def _judged(
    program: Ended, tests: Ended, verdict: Verdict | None, limits: RunLimits, stderr: str
) -> tuple[Outcome, str]:
    """The outcome, and what to tell the Engine."""
    if verdict is None:
        outcome = results.outcome_of(tests, "")
        why = results.text(tests.stderr, limits).strip()
        return ("error" if outcome == "ok" else outcome), results.shortened(f"The tests did not end. {why}".strip())
    story = results.shortened("\n".join(verdict.failures))
    if verdict.passed == verdict.total and not verdict.failures and verdict.load_error is None:
        return "ok", ""
    ended = results.outcome_of(program, stderr)
    if program.reason is not None or (verdict.gone and ended in {"killed", "memory", "timeout"}):
        return ended, f"{results.feedback(ended, program, stderr, limits)}\n{story}".strip()
    if verdict.load_error is not None:
        return "error", results.shortened(verdict.load_error.strip()) or "The program ended before it could be tested."
    return "wrong", story
