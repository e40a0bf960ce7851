"""What programs do, where no test tells: run on the same calls, those that give the same results belong together.

Right programs agree, and wrong ones are wrong each in its own way: the commonest behaviour is the likeliest to be right
(Li et al., AlphaCode, arXiv:2203.07814, section 4.6).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from coda.program.answers import parsed
from coda.program.concurrency import gather_ordered
from coda.program.tools.sandbox import RunLimits, Sandbox

MOST_CALLS = 12

_HARNESS = """

for _call in {calls!r}:
    try:
        _result = repr(eval(_call))
    except Exception as _error:
        _result = type(_error).__name__
    print({mark!r}, _result[:2000], flush=True)
"""
_MARK = "\x02result"


def function_in(programs: Sequence[str], entry_point: str | None) -> str | None:
    """The function that a task is about: as the problem names it, else the last one that all programs define."""
    if entry_point is not None:
        return entry_point
    defined = [_functions(program) for program in programs]
    common = [name for name in defined[0] if all(name in each for each in defined)] if defined else []
    return common[-1] if common else None


def readable_calls(text: str, function: str) -> list[str]:
    """The lines of a text that are calls of the function with plain values, each once."""
    calls = []
    for line in text.splitlines():
        call = line.strip().strip("`").lstrip("-*•> ").strip()
        if _is_plain_call(call, function) and call not in calls:
            calls.append(call)
    return calls[:MOST_CALLS]


async def behaviours(
    sandbox: Sandbox, programs: Sequence[str], calls: Sequence[str], limits: RunLimits
) -> list[tuple[str, ...]]:
    """What each program gives for each call, as text; nothing where it did not get that far."""
    runs = await gather_ordered(
        sandbox.run(program + _HARNESS.format(calls=list(calls), mark=_MARK), limits=limits) for program in programs
    )
    return [
        tuple(line.removeprefix(_MARK).strip() for line in run.stdout.splitlines() if line.startswith(_MARK))
        for run in runs
    ]


def alike(found: Sequence[tuple[str, ...]]) -> list[list[int]]:
    """The indices of programs that behave alike, largest class first; programs that did nothing are in none."""
    classes: dict[tuple[str, ...], list[int]] = {}
    for index, behaviour in enumerate(found):
        if behaviour:
            classes.setdefault(behaviour, []).append(index)
    return sorted(classes.values(), key=lambda members: (-len(members), members[0]))


def _functions(program: str) -> list[str]:
    tree = parsed(program)
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] if tree is not None else []


def _is_plain_call(source: str, function: str) -> bool:
    """Whether a source is a call of the function whose arguments hold no other call: nothing else is to be run."""
    try:
        node = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != function:
        return False
    return not any(isinstance(each, ast.Call) for each in ast.walk(node) if each is not node)
