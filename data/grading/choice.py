"""Multiple choice: the letter, the option's text, or both."""

from __future__ import annotations

from coda.data.examples import Example
from coda.data.grading.grade import Grade, compared, no_answer
from coda.program.answers import aequivalent, normal
from coda.program.answers.choices import LETTERS


async def grade_choice(example: Example, answer: str | None) -> Grade:
    """Grade the choice of an option."""
    choices = example.problem.choices
    expected = _named(normal(example.answer, "choice", choices), choices)
    if answer is None:
        return no_answer(expected)
    right = await aequivalent(answer, example.answer, "choice", choices)
    return compared(right, expected, _named(normal(answer, "choice", choices), choices))


def _named(letter: str, choices: tuple[str, ...]) -> str:
    """The letter with its option's text."""
    place = LETTERS.find(letter) if len(letter) == 1 else -1
    return f"{letter} ({choices[place]})" if 0 <= place < len(choices) else letter
