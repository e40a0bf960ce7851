r"""What a text marks as its answer: ``\boxed{…}``, "the answer is …", "#### …"."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 2000
"""Characters of a statement that are looked at."""

_MOST_TRIED = 50
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\b")
_BRACES = re.compile(r"\\(boxed|fbox|framebox)\b[ \t]*|\\.|[{}]", re.DOTALL)
_UNBRACED = re.compile(r"\\boxed[ \t]+([^\s{}\\$]+)")
_BETWEEN_BOXES = re.compile(r"[\s$,;.()\\]*(?:(?:and|or)\b[\s$,;()\\]*)?")
_STATEMENT = re.compile(
    r"""\banswers?\b [*_"' \t]*
        (?:(?:to|for|of)\b[^\n.:]{0,100}?)?
        (?: : | = | \b(?:is|are|was|equals)\b | \b(?:would|should|must|will)[ ]be\b )
        (?: [*_ \t]* (?: : | = | \b(?:indeed|therefore|thus|simply|exactly|just|now|given[ ]by|option|choice)\b ) )*
        [*_ \t]*
      | ^[ \t]*\#{4}[ \t]+""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def boxed(text: str) -> str | None:
    r"""The content of the last ``\boxed{…}`` that is closed and not empty.

    Boxes with nothing but "and", "or" or a comma between them belong together: their contents are joined by commas.
    """
    boxes = list(_boxes(text))
    if not boxes:
        return _unbraced(text)
    start, _, content = boxes[-1]
    contents = [content]
    for earlier_start, earlier_end, earlier in reversed(boxes[:-1]):
        between = text[earlier_end:start] if earlier_end <= start else ""
        if len(between) > 20 or not between or not _BETWEEN_BOXES.fullmatch(between):
            break
        contents.append(earlier)
        start = earlier_start
    return ", ".join(dict.fromkeys(reversed(contents)))


def statements(text: str) -> Iterator[tuple[str, bool]]:
    """What follows "the answer is", "Answer:" and "####", last first.

    Yields:
        The rest of the line (the next line with something on it, where that is empty), and whether the text ends there.
    """
    for found in list(_STATEMENT.finditer(text))[-_MOST_TRIED:][::-1]:
        start = found.end()
        end = _end_of_line(text, start)
        if not text[start : min(end, start + LONGEST)].strip(" \t*_"):
            start = _next_content(text, end)
            end = _end_of_line(text, start)
        stated = text[start : min(end, start + LONGEST)].strip()
        if found[0].lstrip().startswith("#") and text[end : end + LONGEST].strip():
            continue  # a heading, not an answer: those end the text
        if stated:
            yield stated, not text[end : end + LONGEST].strip()


def _boxes(text: str) -> Iterator[tuple[int, int, str]]:
    """Where boxes begin and end, and what is in them, in order of their ends; one pass over the text."""
    first = _BOX.search(text)
    if first is None:
        return
    opened: list[tuple[int, int] | None] = []
    command: re.Match[str] | None = None
    innermost = -1
    for token in _BRACES.finditer(text, first.start()):
        if token[1]:
            command = token
            continue
        if token[0] == "{":
            is_box = command is not None and command.end() == token.start()
            opened.append((command.start(), token.end()) if is_box and command else None)
        elif token[0] == "}" and opened:
            box = opened.pop()
            if box is None or box[0] < innermost:
                continue  # no box, or one around a box
            if content := text[box[1] : token.start()].strip():
                innermost = box[0]
                yield box[0], token.end(), content
        command = None


def _unbraced(text: str) -> str | None:
    found = _UNBRACED.findall(text)
    return str(found[-1]).rstrip(".,;") or None if found else None


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _next_content(text: str, start: int) -> int:
    """The beginning of the next line with something on it."""
    found = re.compile(r"\S").search(text, start)
    return len(text) if found is None else found.start()
