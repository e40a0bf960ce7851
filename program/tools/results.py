"""From how a job ended to what is said about it."""

from __future__ import annotations

import os
import signal

from coda.program.tools.job import Ended, RunLimits
from coda.program.types import Execution, Isolation, Outcome

LONGEST_FEEDBACK = 2000
_MEMORY_SIGNS = ("MemoryError", "numpy.core._exceptions._ArrayMemoryError", "numpy._core._exceptions._ArrayMemoryError")
_BAD_ALLOC = "std::bad_alloc"


def execution(ended: Ended, limits: RunLimits, isolation: Isolation) -> Execution:
    """What happened, for a program that was run on its own."""
    stdout, stderr = text(ended.stdout, limits, ended.reason), text(ended.stderr, limits, ended.reason)
    outcome = outcome_of(ended, stderr)
    return Execution(
        outcome=outcome,
        stdout=stdout,
        stderr=stderr,
        exit_status=exit_status(ended),
        feedback=feedback(outcome, ended, stderr, limits),
        seconds=ended.seconds,
        peak_memory_mb=ended.peak_mb,
        truncated=ended.reason == "output",
        isolation=isolation,
    )


def outcome_of(ended: Ended, stderr: str) -> Outcome:
    """The outcome of a job, without regard to what it printed."""
    if ended.reason is not None:
        return ended.reason
    if ended.status is None:
        return "killed"
    if os.WIFSIGNALED(ended.status):
        if os.WTERMSIG(ended.status) == signal.SIGXCPU:
            return "timeout"
        return "memory" if _BAD_ALLOC in stderr else "killed"
    if os.WEXITSTATUS(ended.status) == 0:
        return "ok"
    return "memory" if _last_line(stderr).startswith(_MEMORY_SIGNS) else "error"


def feedback(outcome: Outcome, ended: Ended, stderr: str, limits: RunLimits) -> str:
    """What to tell the Engine; empty when all is well."""
    if outcome == "ok":
        return ""
    if outcome == "timeout":
        return f"The program did not end within {limits.timeout:g} seconds and was stopped."
    if outcome == "output":
        return f"The program printed more than {limits.output_bytes} bytes and was stopped."
    if outcome == "memory":
        return _with(f"The program used more than {limits.memory_mb} MiB of memory.", stderr)
    if outcome == "killed":
        return _with(f"The program was killed{_by(ended)}.", stderr)
    return shortened(stderr.strip()) or f"The program ended with exit status {exit_status(ended)}."


def exit_status(ended: Ended) -> int | None:
    """The exit status; minus the signal's number for a program that a signal ended."""
    return None if ended.status is None else os.waitstatus_to_exitcode(ended.status)


def text(data: bytes, limits: RunLimits, reason: str | None = None) -> str:
    """Output as valid text, marked where it was cut."""
    decoded = data.decode("utf-8", "replace")
    if reason == "output" and len(data) >= limits.output_bytes:
        return f"{decoded}\n[cut after {limits.output_bytes} bytes]"
    return decoded


def valid(message: str) -> str:
    """The message as text that can be written as UTF-8: lone surrogates are spelt out."""
    return message.encode("utf-8", "backslashreplace").decode()


def shortened(message: str) -> str:
    """The message, its middle left out where it is long: errors say at the end what they are."""
    if len(message) <= LONGEST_FEEDBACK:
        return message
    half = LONGEST_FEEDBACK // 2
    return f"{message[:half]}\n[…]\n{message[-half:]}"


def _with(sentence: str, stderr: str) -> str:
    return f"{sentence}\n{shortened(stderr.strip())}".strip()


def _by(ended: Ended) -> str:
    if ended.status is None or not os.WIFSIGNALED(ended.status):
        return ""
    number = os.WTERMSIG(ended.status)
    try:
        return f" by {signal.Signals(number).name}"
    except ValueError:
        return f" by signal {number}"


def _last_line(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else ""
