"""How problems and attempts are shown to the Engine."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from coda.program.types import Attempt, Part, Problem

EVIDENCE_CHARS = 2000
"""Characters of reasoning shown for each attempt, where there is room."""

_LIMITS = (EVIDENCE_CHARS, 1000, 500, 200, 0)

_LEAST = 60
"""Characters that are left of anything, however little room there is."""


def statement(problem: Problem) -> str:
    """The problem as the Engine reads it: its text, the options with their letters, the visible tests."""
    parts = [problem.text.strip()]
    if problem.choices:
        parts.append("\n".join(f"{ascii_uppercase[i]}. {choice}" for i, choice in enumerate(problem.choices)))
    if problem.tests:
        parts.append("It must pass:\n" + "\n".join(problem.tests))
    shown = (f"When it reads:\n{case.stdin.strip()}\nit must print:\n{case.expected.strip()}" for case in problem.cases)
    parts.extend(shown)
    return "\n\n".join(parts)


def exhibit(attempt: Attempt, *, limit: int = EVIDENCE_CHARS, code_limit: int | None = None) -> str:
    """An attempt with its evidence: reasoning or program, what running it gave, and the answer.

    Args:
        attempt: The attempt.
        limit: Characters of reasoning, and of what a run said, each.
        code_limit: Characters of the program; ``None`` shows all of it.
    """
    parts = []
    if attempt.code is not None:
        code = attempt.code.strip()
        parts.append(f"Program:\n{code if code_limit is None else shorten(code, code_limit)}")
    elif attempt.reasoning.strip() and limit:
        parts.append(f"Reasoning:\n{shorten(attempt.reasoning.strip(), limit)}")
    if attempt.parts and limit:
        parts.insert(0, f"Parts:\n{shorten(solved_parts(attempt.parts), limit)}")
    if attempt.execution is not None:
        run = attempt.execution
        if run.tests_total:
            parts.append(f"Tests passed: {run.tests_passed} of {run.tests_total}")
        if run.feedback:
            parts.append(f"When run: {shorten(run.feedback, max(limit, _LEAST))}")
        elif run.stdout.strip():
            parts.append(f"It printed: {shorten(run.stdout.strip(), max(limit, _LEAST))}")
    if attempt.answer is not None and attempt.answer != attempt.code:
        parts.append(f"Answer: {attempt.answer}")
    if attempt.finish == "truncated":
        parts.append("(cut off before its end)")
    return "\n".join(parts)


def exhibits(attempts: Sequence[Attempt], *, room: int | None = None) -> str:
    """All attempts, numbered from 1.

    Args:
        attempts: They.
        room: Characters that there is room for; ``None`` for any number. Reasoning gives way first, programs next;
            the answers stay, whatever there is.
    """
    for limit in _LIMITS:
        text = _numbered(attempts, limit, None)
        if room is None or len(text) <= room:
            return text
    share = max(_LEAST, room // max(1, len(attempts)) - 4 * _LEAST) if room is not None else _LEAST
    return _numbered(attempts, 0, share)


def solved_parts(parts: Sequence[Part]) -> str:
    """Parts of a problem with their answers, numbered from 1."""
    return "\n".join(f"{n}. {part.question}\n   {part.answer}" for n, part in enumerate(parts, start=1))


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a long text: its beginning sets the scene, and its end holds the result."""
    if len(text) <= limit:
        return text
    head = limit // 3
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[len(text) - (limit - head) :]}"


def _numbered(attempts: Sequence[Attempt], limit: int, code_limit: int | None) -> str:
    shown = (exhibit(attempt, limit=limit, code_limit=code_limit) for attempt in attempts)
    return "\n\n".join(f"Attempt {n}\n{text}" for n, text in enumerate(shown, start=1))
