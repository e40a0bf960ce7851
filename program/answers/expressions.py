"""Mathematical expressions in a text: whether a piece of it is one, and the last one that it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coda.program.answers.numbers import number, tidy, unwrap

LONGEST = 600
"""Characters of an expression."""

_COMMAND = re.compile(r"\\[A-Za-z]+")
_TEXT_GROUP = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|operatorname|begin|end)\s*\*?\{[^{}]{0,80}\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp sqrt pi oo inf infinity mod gcd lcm "
        "max min abs and or Fraction Rational",
    )
)
_ALLOWED = re.compile(r"[\w\s+\-*/^=<>()\[\]{}|,.:;!%$&~'\\√π∞°−×·÷±≤≥∪∩²³½¼¾₹€£¥]*")
_NUMBER = re.compile(
    r"""(?<![\w.,/])(?:(?<![\d)\]}]\ )|(?=\d))
        (?: [-−]\ ?(?=[$€£¥\\\d.]) )?  (?:\\?[$€£¥₹]\ ?)?
        (?: [-−]?(?:\d+\ (?=\d+/\d))?(?:\d{1,3}(?:(?:,|\{,\})\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,2}\b)?  |  \.\d+ )
        (?: \ ?/\ ?\d+(?![\d.]*\w) | :\d+ )?
        (?: \s?\\?% )?""",
    re.VERBOSE,
)
_SPAN_MARK = re.compile(r"\\[()\[\]]|\$\$?")
_CLOSES = {r"\(": r"\)", r"\[": r"\]", "$": "$", "$$": "$$"}
_EQUALS = re.compile(r"(?<![<>!=:\\])=(?!=)|\\approx|≈|\\Rightarrow|→|\\implies")
_LABEL = re.compile(r"^[^\W\d]\w{0,30}(?: \w{1,30}){0,3}[*_]{0,2}:[*_]{0,2}[ \t]+")
_OPEN_BOX = re.compile(r"\\(?:boxed|fbox|framebox)[ \t]*\{?")
_BULLET = re.compile(r"^(?:[-*•+][ \t]+|#{1,6}[ \t]+|\d+[.)][ \t]+)")
_EMPTY_ANSWERS = frozenset({"none", "null", "nan", "n/a", "na", "unknown", "", "..."})
_LINES = 200
_TAIL = 100_000


def is_expression(text: str) -> bool:
    """Whether a text is nothing but an expression: no words but functions, and something to compute with."""
    if not text or len(text) > LONGEST or text.lower() in _EMPTY_ANSWERS or not _ALLOWED.fullmatch(text):
        return False
    bare = _COMMAND.sub(" ", _TEXT_GROUP.sub(" ", text))
    if any(word not in _FUNCTIONS for word in _WORD.findall(bare)):
        return False
    return bool(re.search(r"[A-Za-z\d∞π]", text))


def clean(text: str) -> str:
    """An expression as it goes into a record: without wrappers; a plain number also without currency and separators."""
    tidied = tidy(text)
    return tidied.replace(",", "") if number(tidied) is not None else unwrap(text)


def last_expression(text: str) -> str | None:
    """The last number or expression of a text; of a very long one, in the part at its end."""
    lines = [line for line in _joined_spans(text[-_TAIL:]).splitlines() if line.strip()]
    for line in reversed(lines[-_LINES:]):
        found = _in_line(line)
        if found is not None:
            return found
    return None


def first_number(text: str) -> str | None:
    """The number that a text begins with."""
    found = _NUMBER.match(text)
    return clean(found[0]) if found else None


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    r"""The mathematics between ``$…$``, ``$$…$$``, ``\(…\)`` and ``\[…\]``: begin, end, content. One pass."""
    opened: re.Match[str] | None = None
    for mark in _SPAN_MARK.finditer(text):
        escaped = mark[0].startswith("$") and text[mark.start() - 1 : mark.start()] == "\\"
        if escaped:
            continue
        if opened is not None and mark[0] == _CLOSES[opened[0]]:
            yield opened.start(), mark.end(), text[opened.end() : mark.start()].strip()
            opened = None
        elif mark[0] in _CLOSES:
            opened = mark


def _in_line(line: str) -> str | None:
    line = _LABEL.sub("", _BULLET.sub("", _OPEN_BOX.sub("", line.strip())))
    whole = unwrap(line)
    right = _right_side(whole)
    if is_expression(right):
        return clean(right)
    span = next(((end, right) for _, end, right in _worth_reading(line)), None)
    numbers = list(_NUMBER.finditer(line))
    if span is not None and (not numbers or numbers[-1].end() <= span[0]):
        return clean(span[1])
    return clean(numbers[-1][0]) if numbers else None


def _worth_reading(line: str) -> Iterator[tuple[int, int, str]]:
    """Spans of mathematics, last first, that hold a value rather than the name of a variable."""
    for start, end, content in reversed(list(spans(line))):
        right = _right_side(content)
        if is_expression(right) and re.search(r"\d|\\(?:pi|infty|sqrt|text)|[A-Za-z].*[+*/^-]", right):
            yield start, end, right


def _right_side(text: str) -> str:
    """What stands after the last equals sign; all of it, where there is none or it holds a list of equations."""
    if "," in text or ";" in text:
        return text
    parts = _EQUALS.split(text)
    return unwrap(parts[-1]) if len(parts) > 1 and parts[-1].strip() else text


def _joined_spans(text: str) -> str:
    """The text with displayed formulas on one line each."""
    pieces, at = [], 0
    for start, end, content in spans(text):
        if "\n" in text[start:end] and len(content) <= LONGEST:
            pieces += [text[at:start], "$", content.replace("\n", " "), "$"]
            at = end
    return "".join([*pieces, text[at:]])
