"""A user's own tools: offered to code paths, chosen by the block's language, corrected on their errors."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from typing import Any

import pytest

from coda.errors import UsageError
from coda.program.conductor import Coda
from coda.program.settings import Settings
from coda.program.tools.registry import Tool, Toolbox, use
from coda.program.types import Problem

PROBLEM = Problem(text="What do all orders cost together?")


def query(source: str) -> str:
    """A database of one table."""
    if "total" not in source:
        raise ValueError("no such column")
    return "42"


SQL = Tool("sql", "runs a query on the table orders(id, total)", query)


def with_tools(pipeline: Any, plain: Settings, **scripts: Any) -> Coda:
    settings = plain.model_copy(update={"paths": ("code",), "quorum": 1})
    return Coda(settings, engine=pipeline(settings, **scripts).engine, tools=[SQL])


def shown(pipeline: Any) -> str:
    return str(pipeline.engine.bodies[-1]["messages"][-1]["content"])


def test_a_block_for_a_tool_goes_to_the_tool(pipeline: Any, plain: Settings) -> None:
    program = with_tools(pipeline, plain, code="```sql\nSELECT sum(total) FROM orders\n```")
    [attempt] = program.solve(PROBLEM).attempts
    assert (attempt.answer, attempt.code) == ("42", "SELECT sum(total) FROM orders")
    assert attempt.execution is not None
    assert attempt.execution.isolation == "unsafe"
    assert "runs a query on the table orders(id, total)" in shown(pipeline)


@pytest.mark.usefixtures("sandboxed")
def test_python_still_goes_to_the_sandbox(pipeline: Any, plain: Settings) -> None:
    [attempt] = with_tools(pipeline, plain, code="```python\nprint(6 * 7)\n```").solve(PROBLEM).attempts
    assert attempt.answer == "42"
    assert attempt.execution is not None
    assert attempt.execution.isolation in ("full", "reduced")


def test_a_tool_s_error_is_the_feedback(pipeline: Any, plain: Settings) -> None:
    right = "```sql\nSELECT sum(total) FROM orders\n```"
    program = with_tools(pipeline, plain, code="```sql\nSELECT sum(price) FROM orders\n```", repair=right)
    [attempt] = program.solve(PROBLEM).attempts
    assert (attempt.answer, attempt.refinements) == ("42", 1)
    assert "sql: ValueError: no such column" in shown(pipeline)


def test_without_tools_nothing_is_offered(pipeline: Any, plain: Settings) -> None:
    settings = plain.model_copy(update={"paths": ("code",), "quorum": 1})
    pipeline(settings, code="print(42)").solve(PROBLEM)
    assert shown(pipeline) == PROBLEM.text


def test_copies_and_other_settings_keep_the_tools(pipeline: Any, plain: Settings) -> None:
    program = with_tools(pipeline, plain, code="```sql\nSELECT sum(total) FROM orders\n```")
    for other in (copy.deepcopy(program), program.with_settings(program.settings)):
        assert other.solve(PROBLEM).answer == "42"


def test_a_block_in_json_is_found() -> None:
    reply = json.dumps({"program": '```sql\nSELECT "total"\n```'})
    assert Toolbox([SQL]).chosen(reply) == (SQL, 'SELECT "total"')
    assert Toolbox().chosen(reply) is None


async def test_async_tools_and_tools_that_hang() -> None:
    async def slow(source: str) -> str:
        await asyncio.sleep(10)
        return source

    async def echo(source: str) -> str:
        return source

    assert (await use(Tool("echo", "says it", echo), "hi", seconds=5)).stdout == "hi"
    assert (await use(Tool("slow", "waits", slow), "hi", seconds=0.05)).outcome == "timeout"
    assert (await use(Tool("nap", "waits", lambda _: str(time.sleep(0.5))), "hi", seconds=0.05)).outcome == "timeout"


@pytest.mark.parametrize("name", ["python", "py", "", "My Tool", "1st"])
def test_names_that_cannot_mark_a_block_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="small letters"):
        Tool(name, "", query)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two tools"):
        Toolbox([SQL, SQL])
