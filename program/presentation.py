"""How problems and attempts are shown to the Engine."""

from __future__ import annotations

from string import ascii_uppercase

from coda.program.types import Attempt, Problem

EVIDENCE_CHARS = 2000
"""Characters of reasoning shown for each attempt; the answer and what the sandbox said are never cut away."""


def statement(problem: Problem) -> str:
    """The problem as the Engine reads it: its text, the options with their letters, the visible tests."""
    parts = [problem.text.strip()]
    if problem.choices:
        parts.append("\n".join(f"{ascii_uppercase[i]}. {choice}" for i, choice in enumerate(problem.choices)))
    if problem.tests:
        parts.append("It must pass:\n" + "\n".join(problem.tests))
    return "\n\n".join(parts)


def exhibit(attempt: Attempt, *, limit: int = EVIDENCE_CHARS) -> str:
    """An attempt with its evidence: reasoning or program, what running it gave, and the answer."""
    parts = []
    if attempt.code is not None:
        parts.append(f"Program:\n{attempt.code.strip()}")
    elif attempt.reasoning.strip():
        parts.append(f"Reasoning:\n{shorten(attempt.reasoning.strip(), limit)}")
    if attempt.execution is not None:
        run = attempt.execution
        if run.tests_total:
            parts.append(f"Tests passed: {run.tests_passed} of {run.tests_total}")
        if run.feedback:
            parts.append(f"When run: {shorten(run.feedback, limit)}")
        elif run.stdout.strip():
            parts.append(f"It printed: {shorten(run.stdout.strip(), limit)}")
    if attempt.answer is not None and attempt.answer != attempt.code:
        parts.append(f"Answer: {attempt.answer}")
    if attempt.finish == "truncated":
        parts.append("(cut off before its end)")
    return "\n".join(parts)


def exhibits(attempts: tuple[Attempt, ...]) -> str:
    """All attempts, numbered from 1."""
    return "\n\n".join(f"Attempt {n}\n{exhibit(attempt)}" for n, attempt in enumerate(attempts, start=1))


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a long text: its beginning sets the scene, and its end holds the result."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[len(text) - (limit - head) :]}"
