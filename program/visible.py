"""What a code problem itself says about right results: its tests, or the examples in its statement.

    >>> add(2, 3)            add(2, 3) == 5           Sample Input 1
    5                        add(2, 3) => 5           2 3
                             assert add(2, 3) == 5    Sample Output 1
                                                      5

Read from a statement they may be misread, so only plain ones are taken: calls whose result is a literal, and blocks
under headings that say "input" and "output".
"""

from __future__ import annotations

import ast
import doctest
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from coda.program.types import IOCase, Problem

MOST = 8
"""At most so many examples of each kind are taken from a statement."""

_ARROW = re.compile(r"\s*(?:==|=>|->|➞|→|⇒|returns?|should return|must return|gives)\s*(.+)$")
_HEADING = re.compile(
    r"^[^\w\n]*(?:sample|example)?[ ]*(input|output)s?[ ]*#?\d*[^\w\n]*$", re.IGNORECASE | re.MULTILINE
)
_OTHER_HEADING = re.compile(
    r"^[^\w\n]*(?:sample|example|explanation|note|constraints?|scoring|hint)s?\b[^\n]{0,20}$",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^[ ]*(?:```|~~~)\w*[ ]*$", re.MULTILINE)


@dataclass(frozen=True)
class VisibleTests:
    """Tests that the solver may see.

    Attributes:
        asserts: Python statements.
        cases: What the program reads and must print.
    """

    asserts: tuple[str, ...] = ()
    cases: tuple[IOCase, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.asserts or self.cases)


def visible_tests(problem: Problem) -> VisibleTests:
    """The tests that a code problem gives; where it gives none, the examples in its statement."""
    if problem.task != "code":
        return VisibleTests()
    if problem.tests or problem.cases:
        return VisibleTests(problem.tests, problem.cases)
    asserts = tuple(dict.fromkeys(_examples(problem.text, problem.entry_point)))[:MOST]
    return VisibleTests(asserts) if asserts else VisibleTests(cases=tuple(_cases(problem.text))[:MOST])


def _examples(text: str, function: str | None) -> Iterator[str]:
    """Examples of calls, as assertions."""
    yield from _doctests(text, function)
    for line in text.splitlines():
        line = line.strip().lstrip("-*•# ").strip("`")
        if line.startswith("assert "):
            if _is_assertion(line, function):
                yield line
        elif not line.startswith(">>>") and (found := _call_with_result(line, function)):
            yield found


def _doctests(text: str, function: str | None) -> Iterator[str]:
    """The examples after ``>>>``."""
    try:
        examples = doctest.DocTestParser().get_examples(text.replace("```", "").replace('"""', "\n"))
    except ValueError:
        return
    for example in examples:
        source, want = example.source.strip(), example.want.strip()
        if _is_call(source, function) and _is_value(want):
            yield f"assert {source} == {want}"


def _call_with_result(line: str, function: str | None) -> str | None:
    """``f(1) => 2`` and its like, anywhere in a line."""
    names = re.escape(function) if function else r"[A-Za-z_]\w*"
    for start in re.finditer(rf"\b{names}\(", line):
        call = _balanced(line[start.start() :])
        if call is None or not _is_call(call, function):
            continue
        arrow = _ARROW.match(line[start.start() + len(call) :])
        want = arrow[1].strip().rstrip(".;,`") if arrow else ""
        if want and _is_value(want):
            return f"assert {call} == {want}"
    return None


def _balanced(text: str) -> str | None:
    """The call at the beginning of a text, up to its closing bracket."""
    for end, sign in enumerate(text):
        if sign == ")" and _parsed(text[: end + 1]) is not None:
            return text[: end + 1]
    return None


def _cases(text: str) -> Iterator[IOCase]:
    """Blocks under the headings "input" and "output", in pairs."""
    plain = _FENCE.sub("", text)
    headings = list(_HEADING.finditer(plain))
    for one, two in itertools.pairwise(headings):
        if (one[1].lower(), two[1].lower()) == ("input", "output"):
            stdin, expected = plain[one.end() : two.start()].strip("\n"), _block(plain[two.end() :])
            if stdin.strip() and expected.strip():
                yield IOCase(stdin.strip() + "\n", expected.strip() + "\n")


def _block(text: str) -> str:
    """A text up to the next heading, or to the blank line after its first lines."""
    heading = min(
        (found.start() for pattern in (_HEADING, _OTHER_HEADING) if (found := pattern.search(text))), default=len(text)
    )
    return re.split(r"\n\s*\n", text[:heading].strip("\n"), maxsplit=1)[0]


def _is_assertion(line: str, function: str | None) -> bool:
    try:
        [statement] = ast.parse(line).body
    except (SyntaxError, ValueError):
        return False
    return isinstance(statement, ast.Assert) and (function is None or f"{function}(" in line)


def _is_call(source: str, function: str | None) -> bool:
    """Whether a source is one call of the function, with arguments that are plain values."""
    node = _parsed(source)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if function is not None and node.func.id != function:
        return False
    return all(_is_value(ast.unparse(value)) for value in (*node.args, *(word.value for word in node.keywords)))


def _parsed(source: str) -> ast.expr | None:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_value(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return True
