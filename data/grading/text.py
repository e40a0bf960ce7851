"""Answers in words: the same text, case, spacing and punctuation around it aside."""

from __future__ import annotations

from coda.data.examples import Example
from coda.data.grading.grade import Grade, compared, no_answer
from coda.program.answers import aequivalent, normal

_LONGEST_SHOWN = 300


async def grade_text(example: Example, answer: str | None) -> Grade:
    """Grade an answer in words."""
    if answer is None:
        return no_answer(repr(example.answer))
    right = await aequivalent(answer, example.answer, "text")
    return compared(right, repr(example.answer), repr(normal(answer, "text")[:_LONGEST_SHOWN]))
