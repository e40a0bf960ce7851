"""Mathematical answers: the same value or expression as the reference, see `coda.program.answers`."""

from __future__ import annotations

from coda.data.examples import Example
from coda.data.grading.grade import Grade, compared, no_answer
from coda.program.answers import aequivalent, normal


async def grade_math(example: Example, answer: str | None) -> Grade:
    """Grade a mathematical answer."""
    expected = normal(example.answer, "math")
    if answer is None:
        return no_answer(expected)
    return compared(await aequivalent(answer, example.answer, "math"), expected, normal(answer, "math"))
