"""Telling when two answers are the same."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence

from coda.program.answers.checker import shared_checker
from coda.program.answers.choices import named_option
from coda.program.answers.expressions import clean
from coda.program.answers.numbers import LONGEST, number, same_number, tidy
from coda.program.concurrency import run_sync
from coda.program.types import Task

_WORDS = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
_ARTICLE = re.compile(r"^(?:the|a|an) ")


async def aequivalent(answer: str, reference: str, task: Task, choices: Sequence[str] = ()) -> bool:
    """Whether an answer means the same as a reference.

    Mathematics follows math-verify: ``1/2``, ``0.5`` and ``50%`` are the same, and so are ``x = 5`` and the reference
    ``5``. Plain numbers are decided at once; everything else in a worker process, where a comparison that takes longer
    than `coda.program.answers.checker.SECONDS` counts as "not the same". Options are the same when they name the same
    letter, programs when their text is, texts when they differ in case, spacing and punctuation only.

    Raises:
        CodaError: The worker processes cannot be started.
    """
    return await _same(answer, reference, task, choices, mutual=False)


def equivalent(answer: str, reference: str, task: Task, choices: Sequence[str] = ()) -> bool:
    """`aequivalent`, for callers that are not async."""
    decided = _decide(answer, reference, task, choices)
    return decided if decided is not None else run_sync(aequivalent(answer, reference, task, choices))


async def group(answers: Sequence[str | None], task: Task, choices: Sequence[str] = ()) -> list[list[int]]:
    """Sort answers into classes of the same meaning.

    Args:
        answers: They; ``None`` belongs to no class.
        task: Their kind.
        choices: The options of a multiple-choice problem.

    Returns:
        The indices of each class, largest class first, then in the order of their first members.
    """
    classes: dict[str, list[int]] = {}
    for index, answer in enumerate(answers):
        if answer is None:
            continue
        heads = list(classes)
        checks = (_same(answer, head, task, choices, mutual=True) for head in heads)
        alike = [head for head, same in zip(heads, await asyncio.gather(*checks), strict=True) if same]
        classes.setdefault(alike[0] if alike else answer, []).append(index)
    return sorted(classes.values(), key=lambda members: (-len(members), members[0]))


def normal(answer: str, task: Task, choices: Sequence[str] = ()) -> str:
    """An answer as records and displays show it: equal texts where the sameness is plain to see."""
    if task == "choice":
        return named_option(answer, choices) or answer.strip()
    if task == "code":
        return _program(answer)
    if task == "text":
        return " ".join(answer.split())
    value = number(tidy(answer))
    return str(value) if value is not None else clean(answer)


async def _same(a: str, b: str, task: Task, choices: Sequence[str], *, mutual: bool) -> bool:
    decided = _decide(a, b, task, choices)
    if decided is not None:
        return decided
    answer, reference = tidy(a), tidy(b)
    return await shared_checker().same(_as_list(reference, answer), _as_list(answer, reference), mutual=mutual)


def _decide(a: str, b: str, task: Task, choices: Sequence[str]) -> bool | None:
    """What can be told without mathematics; ``None`` where it cannot."""
    if a == b:
        return True
    if task == "code":
        return _program(a) == _program(b)
    if task == "choice":
        return (named_option(a, choices) or _folded(a)) == (named_option(b, choices) or _folded(b))
    one, two = tidy(a), tidy(b)
    first, second = number(one), number(two)
    if task == "text":
        return _folded(a) == _folded(b) or (first is not None and first == second)
    if one == two or max(len(one), len(two)) > LONGEST:
        return one == two
    if first is not None and second is not None:
        return same_number(first, second)
    words = [bool(_WORDS.fullmatch(text)) and len(text) > 3 for text in (one, two)]
    return _folded(one) == _folded(two) if any(words) else None


def _as_list(text: str, other: str) -> str:
    """Python prints a list in brackets; beside an answer without any they are not an interval's."""
    plain = not other.startswith(("[", "(", r"\left", r"\begin"))
    return text[1:-1] if plain and text.startswith("[") and text.endswith("]") and "," in text else text


def _program(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _folded(text: str) -> str:
    """A text for comparison: no case, single spaces, no article in front, no punctuation around it."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .,;:!?\"'`*_$")
    return _ARTICLE.sub("", plain)
