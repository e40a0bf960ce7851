"""Programs in a text: the last fenced block, or what looks like Python."""

from __future__ import annotations

import ast
import re
import warnings

LONGEST = 200_000
"""Characters; what is longer is no program that a model wrote."""

_FENCE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*$", re.MULTILINE)
_PYTHON = frozenset({"python", "py", "python3", "tool_code"})
_OUTPUT = frozenset({"output", "text", "txt", "plaintext", "console", "bash", "sh", "shell", "json", "stdout"})
_BEGINS_CODE = re.compile(r"(?:print\(|import \w|from \w+ import|def |class |for |while |if |@\w|[A-Za-z_]\w* ?=[^=])")
_LONGEST_BARE = 20_000
_LINES_DROPPED = 12
_LINES_TRIED = 12


def extract_program(text: str) -> str | None:
    """Return the program in a text, ``None`` where there is none.

    The last fenced block of Python wins, one that parses before one that does not; then the last block that is not
    marked as output or data; then, without a usable block, whatever part of the text parses as Python and does
    something.
    """
    blocks = _fenced(text)
    marked = [code for language, code in blocks if language in _PYTHON]
    unmarked = [code for language, code in blocks if language not in _OUTPUT]
    for found in (marked, unmarked):
        if found:
            return next((code for code in reversed(found) if looks_like_program(code)), found[-1])
    return _bare_program(text)


def looks_like_program(text: str) -> bool:
    """Whether a text parses as Python and does something: calls, assigns, defines or imports."""
    tree = parsed(text)
    if tree is None or any(isinstance(node, ast.Return) for node in tree.body):
        return False
    return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body)


def _fenced(text: str) -> list[tuple[str, str]]:
    """The non-empty fenced blocks with their languages; the last may lack its closing fence."""
    blocks = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
            continue
        blocks.append((opened[1].lower(), text[opened.end() : fence.start()]))
        opened = fence if fence[1] else None
    if opened is not None:
        blocks.append((opened[1].lower(), text[opened.end() :]))
    return [(language, code.strip("\r\n").rstrip()) for language, code in blocks if code.strip()]


def _bare_program(text: str) -> str | None:
    """A program without a fence around it: from a line that begins like code, as many lines as parse."""
    stripped = text.strip()
    if looks_like_program(stripped):
        return stripped
    lines = stripped[:_LONGEST_BARE].splitlines()
    starts = [number for number, line in enumerate(lines) if _BEGINS_CODE.match(line)][:_LINES_TRIED]
    for start in starts:
        for end in range(len(lines), max(start, len(lines) - _LINES_DROPPED), -1):
            code = "\n".join(lines[start:end]).rstrip()
            if looks_like_program(code):
                return code
    return None


def parsed(text: str) -> ast.Module | None:
    """A program's syntax tree; ``None`` where it is none, or too long for one. Never warns."""
    if not text or len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
