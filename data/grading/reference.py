"""Whether a reference answer is one that its grader can work with."""

from __future__ import annotations

from coda.data.examples import Example
from coda.program.answers.choices import named_option
from coda.program.answers.expressions import is_expression
from coda.program.answers.extraction import is_name
from coda.program.answers.numbers import LONGEST, number, tidy


def why_ungradable(example: Example) -> str:
    """Why no answer to this example could be graded, and what to do about it; empty where all is well."""
    return _CHECKS[example.problem.task](example)


def _math(example: Example) -> str:
    answer = tidy(example.answer)
    if number(answer) is not None or is_name(answer) or (is_expression(answer) and len(answer) <= LONGEST):
        return ""
    return (
        f"{_shown(example.answer)} is no number, expression or name that can be graded as math. "
        'Write the value alone, or give the row "task": "text".'
    )


def _choice(example: Example) -> str:
    if len(example.problem.choices) < 2:
        return 'a multiple-choice problem needs "choices" with at least two options.'
    if len(example.problem.choices) > 10:
        return "a multiple-choice problem can have at most ten options, A to J."
    if named_option(example.answer, example.problem.choices) is None:
        return f"{_shown(example.answer)} names none of the options. Give the option's letter or its text."
    return ""


def _code(example: Example) -> str:
    if example.problem.tests or example.hidden_tests or example.io or example.sealed_tests:
        return ""
    return 'a code problem needs "tests", "hidden_tests" or "io": without tests a program cannot be graded.'


def _text(example: Example) -> str:
    return "" if example.answer.strip() else "it is empty."


_CHECKS = {"math": _math, "choice": _choice, "code": _code, "text": _text}


def _shown(answer: str) -> str:
    return repr(answer if len(answer) <= 80 else f"{answer[:80]}…")
