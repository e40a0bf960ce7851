"""Multiple choice: which option a text names, by its letter, by its text, or by both."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coda.program.answers.marks import boxed, statements
from coda.program.answers.numbers import number, same_number, tidy, unwrap

LETTERS = "ABCDEFGHIJ"

_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit|textrm)\s*\{([^{}]*)\}")
_NOT_DISMISSED = r"""(?!\W{0,3}\s(?:is|was|are|looks|seems|can|cannot|could|would|does)\b
    (?!\s(?:the\s)?(?:right|correct|best|answer)))"""
_LEADING_LETTER = re.compile(
    rf"""(?:(?i:option|choice|answer)\b)?\s*
        (?: [(\[{{]\s*(?P<enclosed>[A-Ja-j])\s*[)\]}}]
          | (?P<bare>[A-J])(?=\s*(?:[).:,;*\]\n]|$|[-–—]\s|\s(?:because|since|as|is|with|which|due)\b))
          | (?P<small>[a-j])(?=[).:]|$) )
        {_NOT_DISMISSED}""",
    re.VERBOSE,
)
_MARKED_LETTER = re.compile(
    rf"""(?: \b(?i:option|choice|answer)\s*(?:is|:)?\s*[(\[*]* | \*\*\s*\(? | [(\[] )
        ([A-J])(?![A-Za-z'’]){_NOT_DISMISSED}""",
    re.VERBOSE,
)
_LAST_LETTER = re.compile(r"(?:^|[\s(*])([A-J])[\s.)*]*$")
_SPACE = re.compile(r"\s+")
_LAST_LINES = 40
_LONGEST = 2000


def read_choice(text: str, choices: Sequence[str] = ()) -> str | None:
    """The letter of the option that a text settles on, ``None`` where it names none.

    A boxed option wins, then the last stated answer, then the last line that names an option.
    """
    content = boxed(text)
    if content is not None and (letter := named_option(content, choices)):
        return letter
    for stated, _ in statements(text):
        if letter := named_option(stated, choices):
            return letter
    lines = [line[:_LONGEST] for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    for line in reversed(lines):
        if letter := named_option(line, choices):
            return letter
    return None


def named_option(text: str, choices: Sequence[str] = ()) -> str | None:
    """The letter of the option that a short piece of text names, by letter, by text, or by both."""
    text = _plain(text)
    if exact := _by_text(text, choices):
        return exact
    found = _LEADING_LETTER.match(text)
    if found:
        letter = str(found["enclosed"] or found["bare"] or found["small"]).upper()
        if _offered(letter, choices):
            return letter
    return _by_part(text, choices) or _mentioned(text, choices)


def _mentioned(line: str, choices: Sequence[str]) -> str | None:
    """The last option that a line of prose marks: "(B)", "**B**", "option B", or "so it is B." at its end."""
    found = _MARKED_LETTER.findall(line) + _LAST_LETTER.findall(line)
    letters = [letter for letter in found if _offered(letter, choices)]
    return letters[-1] if letters else None


def _plain(text: str) -> str:
    return unwrap(_TEXT_COMMAND.sub(r"\1", unwrap(text[:_LONGEST]))).strip("* \t\n_{}\"'")


def _offered(letter: str, choices: Sequence[str]) -> bool:
    return not choices or LETTERS.index(letter) < len(choices)


def _by_text(text: str, choices: Sequence[str]) -> str | None:
    """The one option whose text this is."""
    wanted, value = _folded(text), number(tidy(text))
    equal = [letter for letter, option in zip(LETTERS, choices, strict=False) if _folded(option) == wanted]
    if not equal and value is not None:
        options = [(letter, number(tidy(option))) for letter, option in zip(LETTERS, choices, strict=False)]
        equal = [letter for letter, option in options if option is not None and same_number(option, value)]
    return equal[0] if len(equal) == 1 else None


def _by_part(text: str, choices: Sequence[str]) -> str | None:
    """The one option whose text is part of this; the longest one where one option contains another."""
    folded = f" {_folded(text)} "
    found = [(len(option), letter, _folded(option)) for letter, option in zip(LETTERS, choices, strict=False)]
    inside = [(size, letter, option) for size, letter, option in found if option and f" {option} " in folded]
    if not inside:
        return None
    _, letter, longest = max(inside)
    return letter if all(option in longest for _, _, option in inside) else None


def _folded(text: str) -> str:
    """A text for comparison: no case, no marks of mathematics, single spaces, no full stop."""
    words = re.sub(r"[$\\{}*_`\"'(),;:!?]", " ", _TEXT_COMMAND.sub(r"\1", text)).casefold()
    return _SPACE.sub(" ", words).strip(" .")
