"""Sums, and a model that writes right programs once it has seen one."""

from __future__ import annotations

import re
from typing import Any

from coda.data.benchmarks import Benchmark, Example
from coda.program.types import Problem


def split(name: str, first: int, n: int, benchmark: str = "sums") -> Benchmark:
    """A part of a benchmark of sums; training rows carry reference programs."""
    examples = tuple(
        Example(
            id=f"{name}-{i}",
            problem=Problem(text=f"What is {i} + 5?"),
            answer=str(i + 5),
            program=f"print({i} + 5)" if name == "train" else None,
            split=name,  # type: ignore[arg-type]
        )
        for i in range(first, first + n)
    )
    return Benchmark(name=benchmark, examples=examples, split=name, digest=name)


def imitator(messages: list[dict[str, Any]]) -> str:
    """Writes a right program when it has seen one without any markers; else it rambles."""
    shown = [message["content"] for message in messages if message["role"] == "assistant"]
    if any(text.startswith("print(") for text in shown):
        first, second = re.findall(r"\d+", messages[-1]["content"])[:2]
        return f"print({first} + {second})"
    return "That is hard to say. Maybe 7."
