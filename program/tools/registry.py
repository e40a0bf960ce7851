"""Tools besides the Python interpreter that programs may be written for.

    def query(sql: str) -> str:
        return str(sqlite3.connect("file:shop.db?mode=ro", uri=True).execute(sql).fetchall())

    Coda(engine=engine, tools=[Tool("sql", "runs a query on the table orders(id, total)", query)])

Paths with mode ``code`` offer them to the Engine, which chooses one by the language that its block of code names; a
block for a tool goes to the tool, all others to the sandbox. A tool is the user's own code and runs with the user's
rights, on text that a model wrote: what it must not be able to do, it must not allow.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Self

from coda.errors import UsageError
from coda.program.concurrency import in_tools_pool, within
from coda.program.types import Execution

_BLOCK = re.compile(r"^[ \t]*```([\w+-]+)[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9+_-]*")


@dataclass(frozen=True)
class Tool:
    """Something that a program can be written for.

    Attributes:
        name: What its blocks of code are marked with, such as ``sql``.
        description: What it does, as the Engine reads it.
        run: Takes what was written for it, and returns what it prints. An exception is the feedback to the Engine.

    Raises:
        UsageError: The name cannot mark a block, or is Python's.
    """

    name: str
    description: str
    run: Callable[[str], str | Awaitable[str]]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in ("python", "py"):
            raise UsageError(f"Tool {self.name!r}: give it a name of small letters other than python, such as sql.")


class Toolbox:
    """The tools of a program.

    Args:
        tools: They.

    Raises:
        UsageError: Two have one name.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise UsageError(f"There are two tools with the name {tool.name!r}: give each a name of its own.")
            self.tools[tool.name] = tool

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Copies of a program share its tools."""
        return self

    def offer(self) -> str:
        """What the Engine is told of them; empty without any."""
        if not self.tools:
            return ""
        listed = "\n".join(f"```{tool.name}``` {tool.description}" for tool in self.tools.values())
        return f"Instead of Python, a block of code can be written for one of these tools:\n{listed}"

    def chosen(self, reply: str) -> tuple[Tool, str] | None:
        """The tool that the last block of code in a reply is for, and what is in it; ``None`` where it is for none."""
        blocks = _BLOCK.findall(reply) or _BLOCK.findall(_unescaped(reply)) if self.tools else []
        if not blocks or blocks[-1][0].lower() not in self.tools:
            return None
        name, source = blocks[-1]
        return self.tools[name.lower()], source.strip()


def _unescaped(reply: str) -> str:
    """A reply whose program stands in a JSON text."""
    return reply.replace('"```', "\n```").replace("\\n", "\n").replace('\\"', '"')


async def use(tool: Tool, source: str, *, seconds: float) -> Execution:
    """Let a tool do its work.

    Args:
        tool: Which.
        source: What was written for it.
        seconds: How long; afterwards it is not waited for any more; a function that is not async runs on regardless.
    """
    began = time.monotonic()

    def ended(**what: str) -> Execution:
        return Execution.model_validate({"isolation": "unsafe", "seconds": time.monotonic() - began, **what})

    try:
        printed = await within(seconds, _run(tool, source))
    except TimeoutError:
        return ended(outcome="timeout", feedback=f"{tool.name} did not end within {seconds:g} seconds.")
    except Exception as error:  # a tool may raise anything; the Engine is to correct what it wrote
        return ended(outcome="error", feedback=f"{tool.name}: {type(error).__name__}: {error}")
    return ended(outcome="ok", stdout=printed)


async def _run(tool: Tool, source: str) -> str:
    if inspect.iscoroutinefunction(tool.run):
        return str(await tool.run(source))
    result = await in_tools_pool(tool.run, source)
    return str(await result) if inspect.isawaitable(result) else str(result)
