"""Records made by hand: the smallest stories that show one thing each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coda.optimize.records import GradedAttempt, Record
from coda.program.types import Execution, Path, Problem, Verdict


def _attempt(answer: str | None, *, right: str = "4", mode: str = "reason", **more: Any) -> GradedAttempt:
    origin = more.setdefault("origin", "path")
    path = Path(mode=mode) if origin == "path" else None  # type: ignore[arg-type]
    correct = answer == right
    return GradedAttempt(path=path, answer=answer, correct=correct, score=float(correct), **more)


def _record(*attempts: GradedAttempt, chosen: int | None = 0, id: str = "p1", **more: Any) -> Record:
    answers: dict[str, list[int]] = {}
    for index, attempt in enumerate(attempts):
        if attempt.answer is not None:
            answers.setdefault(attempt.answer, []).append(index)
    taken = attempts[chosen] if attempts and chosen is not None else None
    fields: dict[str, Any] = {
        "problem": Problem(text="What is 2 + 2?"),
        "answer": taken.answer if taken else None,
        "expected": "4",
        "score": taken.score if taken else 0.0,
        "correct": taken.correct if taken else False,
        "attempts": attempts,
        "classes": tuple(tuple(members) for members in answers.values()),
        "verdict": Verdict(answer=taken.answer if taken else None, confidence=0.5, chosen=chosen),
    }
    return Record(id=id, **{**fields, **more})


def _execution(outcome: str) -> Execution:
    return Execution(outcome=outcome)  # type: ignore[arg-type]


@pytest.fixture
def attempt() -> Callable[..., GradedAttempt]:
    """An attempt with this answer; "4" is right."""
    return _attempt


@pytest.fixture
def record() -> Callable[..., Record]:
    """A record of these attempts, of which the verifier chose number ``chosen``."""
    return _record


@pytest.fixture
def execution() -> Callable[[str], Execution]:
    """A program's run with this outcome."""
    return _execution
