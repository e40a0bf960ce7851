"""Reading the answer from a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coda.program.answers.choices import read_choice
from coda.program.answers.expressions import clean, first_number, is_expression, last_expression, spans
from coda.program.answers.marks import boxed, statements
from coda.program.answers.numbers import unwrap
from coda.program.answers.programs import extract_program
from coda.program.types import Task

_CLAUSE_END = re.compile(r"[.!?](?=\s|$)|\s(?:because|since|so that|which|where)\s|\s*\n")
_NAME = re.compile(r"(?:\\(?:text|mathrm|textbf)\s*\{)?\s*[^\W\d_][\w'’-]*(?:\s[\w'’-]+){0,2}\s*\}?")
_NO_ANSWER = frozenset(
    ("none", "null", "nan", "n/a", "na", "unknown", "unclear", "correct", "incorrect", "right", "wrong")
)
"""Words in an answer's place that are none: what empty variables print, and what is said of an answer."""


def extract(text: str, task: Task, choices: Sequence[str] = ()) -> str | None:
    r"""Read the answer from a text, such as a model's reply or what a program printed.

    The last ``\boxed{…}`` wins, then the last stated answer ("the answer is …", "Answer: …", "#### …"), then what the
    task suggests: the last number or expression (math), the last option named by letter or text (choice), the last
    program (code), the text itself (text). Takes time linear in the length of the text and never raises.

    Args:
        text: The text.
        task: The kind of answer that is wanted.
        choices: The options of a multiple-choice problem.

    Returns:
        The answer (an option's letter, where it can be told), or ``None`` where there is none.
    """
    if task == "code":
        return extract_program(text)
    if task == "choice":
        return read_choice(text, choices)
    return _read_math(text) if task == "math" else _read_text(text)


def _read_math(text: str) -> str | None:
    content = boxed(text)
    if content is not None:
        return clean(content) or None
    for stated, _ in statements(text):
        if found := _stated_value(stated):
            return found
    return last_expression(text) or _single_name(text.strip())


def _read_text(text: str) -> str | None:
    content = boxed(text)
    if content is not None:
        return unwrap(content) or None
    stated = next((stated for stated, _ in statements(text)), None)
    return unwrap((stated if stated is not None else text).strip("* \t\n_")) or None


def _stated_value(stated: str) -> str | None:
    """The value in what follows "the answer is"."""
    first = next(spans(stated), None)
    if first is not None and first[0] <= 2 and is_expression(first[2]):
        return clean(_after_name(first[2]))
    clause = _clause(stated)
    whole = unwrap(clause.strip("* \t_"))
    if is_expression(whole):
        return clean(_after_name(whole))
    return first_number(whole) or last_expression(clause) or _single_name(whole)


def _clause(stated: str) -> str:
    """A statement up to the end of its first sentence."""
    end = _CLAUSE_END.search(stated)
    return stated[: end.start()] if end and end.start() else stated


def _after_name(expression: str) -> str:
    """``x = 5`` as ``5``; equations between two expressions, and lists of equations, stay."""
    found = re.fullmatch(r"\s*(?:[A-Za-z]|\\[A-Za-z]+)(?:_\{?\w+\}?)?\s*=([^=,;<>]+)", expression)
    return found[1] if found else expression


def is_name(text: str) -> bool:
    r"""Whether a text is a name: one to three words, or words in ``\text{…}``, and nothing else."""
    return bool(_NAME.fullmatch(text))


def _single_name(text: str) -> str | None:
    """An answer that is one word, or words marked as text; words that say nothing are none."""
    text = unwrap(text.strip("* \t_"))
    if not is_name(text) or text.lower() in _NO_ANSWER:
        return None
    return text if len(text.split()) == 1 or text.startswith("\\") else None
