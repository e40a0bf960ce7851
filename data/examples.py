"""Examples and benchmarks: problems with their reference answers."""

from __future__ import annotations

import hashlib
from typing import Literal, get_args

from pydantic import Field

from coda.program.types import Frozen, IOCase, Problem

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


class Example(Frozen):
    """A problem with what only the data layer may see: the reference answer and the hidden tests."""

    id: str = Field(min_length=1)
    problem: Problem
    answer: str
    """The reference; for a code problem a reference program, or empty where the benchmark gives none."""
    program: str | None = None
    """A program that solves the problem, for labelled demos: training examples only."""
    hidden_tests: tuple[str, ...] = ()
    """What grades a code problem: Python statements, or code that defines ``check(candidate)``. Without any, the
    visible tests do; they are not added, since a docstring's example, unlike a test, may be wrong."""
    io: tuple[IOCase, ...] = ()
    """Tests of a code problem by what the program reads and prints."""
    sealed_tests: str = ""
    """Further tests as the benchmark encodes them; unpacked when a program is graded, since they can be huge."""
    float_tolerance: float | None = None
    """How far printed numbers may be off."""
    preamble: str = ""
    """Code that the benchmark puts in front of a program before it tests it."""
    split: Split = "test"


class Benchmark(Frozen):
    """Examples of one kind, in a fixed order."""

    name: str
    examples: tuple[Example, ...]
    split: str
    """Which part this is; ``all`` for the whole."""
    digest: str
    """SHA-256 of the examples, reference answers and hidden tests included."""
    licence: str = ""
    source: str = ""
    """Where the data comes from: the hub's repository and revision, or a file."""
    notes: tuple[str, ...] = ()
    """What a user should know about this data."""


def digest_of(examples: tuple[Example, ...]) -> str:
    """SHA-256 of the examples, in order."""
    content = hashlib.sha256()
    for example in examples:
        content.update(example.model_dump_json().encode())
        content.update(b"\n")
    return content.hexdigest()
