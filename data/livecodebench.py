"""LiveCodeBench: its versions, its date window, and its encoded tests.

Problems carry the date of their contest, so that a model can be tested on those that are younger than its training
data: ``livecodebench:release_v5:2024-10-01:2025-02-28``.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import random
import zlib
from dataclasses import dataclass
from datetime import date
from typing import Any

from coda.data.schemas import Draft, Row
from coda.errors import DataError
from coda.program.types import IOCase, Problem

DEFAULT_VERSION = "release_v6"
LARGEST_TESTS = 1 << 30
"""Bytes of one problem's tests, unpacked."""

PREAMBLE = """import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush
from itertools import accumulate, combinations, permutations, product
from math import ceil, comb, floor, gcd, inf, sqrt
from typing import *
sys.setrecursionlimit(50000)
"""
"""What the contests' own runners import for everyone."""

_BY_INPUT = "Read the input from standard input, and print the answer to standard output."
_STARTER = "Complete this code, and keep its names:"


@dataclass(frozen=True)
class Edition:
    """Which problems: a version of the data set, and the first and last day of their contests."""

    version: str = DEFAULT_VERSION
    first: date | None = None
    last: date | None = None

    @classmethod
    def parse(cls, parts: list[str]) -> Edition:
        """Read what follows ``livecodebench:`` in a benchmark's name: version, first day, last day.

        Raises:
            DataError: A day is none, or the window is empty.
        """
        version, first, last, *rest = [*parts, "", "", ""][: max(3, len(parts))]
        if rest:
            raise DataError("A name like livecodebench:VERSION:FIRST-DAY:LAST-DAY has at most three parts after it.")
        edition = cls(version or DEFAULT_VERSION, _day(first), _day(last))
        if edition.first and edition.last and edition.first > edition.last:
            raise DataError(f"livecodebench: the window from {first} to {last} is empty. Exchange the days.")
        return edition

    def holds(self, row: Row) -> bool:
        """Whether a row's contest lies in the window."""
        day = _day(str(row["contest_date"])[:10])
        return day is None or ((not self.first or day >= self.first) and (not self.last or day <= self.last))


def read(row: Row, rng: random.Random) -> Draft:
    """A problem by standard input and output, or a method of a class ``Solution``."""
    public = json.loads(row["public_test_cases"])
    name = json.loads(row["metadata"] or "{}").get("func_name")
    starter = (row["starter_code"] or "").rstrip()
    how = f"{_STARTER}\n\n{starter}" if starter else _BY_INPUT
    visible = _calls(public, name) if name else ()
    problem = Problem(text=f"{row['question_content'].strip()}\n\n{how}", task="code", tests=visible)
    return Draft(
        problem,
        "",
        id=str(row["question_id"]),
        hidden_tests=visible,
        io=() if name else _cases(public),
        sealed_tests=json.dumps({"function": name, "tests": row["private_test_cases"]}),
        float_tolerance=0.0,
        preamble=PREAMBLE,
    )


def unseal(sealed: str) -> tuple[tuple[str, ...], tuple[IOCase, ...]]:
    """The private tests of a problem: Python statements, and cases by input and output.

    They are unpacked when a program is graded, not when the benchmark is loaded: a version's tests together are larger
    than most memories.

    Raises:
        DataError: They cannot be decoded.
    """
    content = json.loads(sealed)
    tests = decode(content["tests"])
    name = content["function"]
    return (_calls(tests, name), ()) if name else ((), _cases(tests))


def decode(encoded: str) -> list[dict[str, Any]]:
    """Decode private tests: JSON, or base64 of zlib of a pickle of JSON.

    A pickle can run code when it is loaded; this one may hold a text and nothing else.

    Raises:
        DataError: They are something else.
    """
    try:
        tests = json.loads(encoded)
    except ValueError:
        tests = _decode_pickled(encoded)
    if not isinstance(tests, list) or not all(isinstance(t, dict) and {"input", "output"} <= t.keys() for t in tests):
        raise DataError("LiveCodeBench's private tests are no list of inputs with outputs. Was the schema changed?")
    return tests


def _decode_pickled(encoded: str) -> Any:
    try:
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(base64.b64decode(encoded, validate=True), LARGEST_TESTS)
        if unpacker.unconsumed_tail:
            raise DataError(f"LiveCodeBench's private tests unpack to more than {LARGEST_TESTS >> 20} MiB: refused.")
        text = _TextOnly(io.BytesIO(packed)).load()
        return json.loads(text)
    except (binascii.Error, zlib.error, pickle.UnpicklingError, ValueError, EOFError, TypeError, IndexError) as error:
        raise DataError(
            f"LiveCodeBench's private tests cannot be decoded ({error}). Was the schema changed?"
        ) from error


class _TextOnly(pickle.Unpickler):
    """Unpickles plain values; anything that names a class or a function is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}, and may hold a text only")

    def persistent_load(self, identity: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside, and may hold a text only")


def _cases(tests: list[dict[str, Any]]) -> tuple[IOCase, ...]:
    return tuple(IOCase(str(test["input"]), str(test["output"])) for test in tests)


def _calls(tests: list[dict[str, Any]], name: str) -> tuple[str, ...]:
    """Tests of a method: each input holds one JSON value per line, the output is a JSON value."""
    return tuple(_call(test, name) for test in tests)


def _call(test: dict[str, Any], name: str) -> str:
    arguments = ", ".join(repr(json.loads(line)) for line in str(test["input"]).splitlines() if line.strip())
    return f"assert Solution().{name}({arguments}) == {json.loads(str(test['output']))!r}"


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise DataError(f"livecodebench: {text!r} is no day. Write it like 2024-10-01.") from error
