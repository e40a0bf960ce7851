"""Tests of functions: what passes, what fails and how that is told, and that no verdict can be forged."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from coda.program.tools.sandbox import RunLimits, Sandbox

pytestmark = pytest.mark.sandbox

FORGERIES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "forging.toml").read_text("utf-8"))["program"]
HONEST = "def add(a, b):\n    return a + b\n"
TESTS = ["assert add(2, 3) == 5", "assert add(-1, 2) == 1", "assert add(10, 20) == 30"]
SHARED = Path(os.environ.get("CODA_SHARED_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))


async def test_honest_program_passes(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests(HONEST, TESTS)
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("ok", 3, 3)
    assert execution.feedback == ""


@pytest.mark.parametrize("row", FORGERIES, ids=[row["name"] for row in FORGERIES])
async def test_forger_does_not_pass(sandbox: Sandbox, row: dict[str, Any]) -> None:
    limits = RunLimits(timeout=float(row.get("timeout", 10.0)), memory_mb=256)
    tests = row.get("tests", TESTS)
    execution = await sandbox.run_tests(row["code"], tests, entry_point=row.get("entry_point"), limits=limits)
    assert execution.outcome not in {"ok", "no-sandbox"}
    assert execution.tests_passed == 0
    assert execution.feedback


@pytest.mark.parametrize("row", [row for row in FORGERIES if "987654321" not in str(row.get("tests"))][:30])
async def test_forgers_tests_can_be_passed_honestly(sandbox: Sandbox, row: dict[str, Any]) -> None:
    tests = row.get("tests", TESTS)
    if "honest" in row:
        program = row["honest"]
    elif "except" in str(tests):
        program = "def add(a, b):\n    raise ValueError\n"
    elif "list(add" in str(tests):
        program = "def add(a, b):\n    yield a + b\n"
    else:
        program = f"import math\n{HONEST}"
    execution = await sandbox.run_tests(program, tests, entry_point=row.get("entry_point"))
    assert (execution.outcome, execution.feedback) == ("ok", "")


async def test_failure_says_what_was_called_and_what_was_expected(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests("def add(a, b):\n    return a - b\n", TESTS)
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 0, 3)
    assert execution.feedback.splitlines()[:3] == [
        "Test 1 of 3 failed: add(2, 3) == 5",
        "  add(2, 3) returned -1",
        "  expected 5, got -1",
    ]


async def test_expected_value_may_stand_on_the_left(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests(HONEST, ["assert 6 == add(2, 3)"])
    assert "expected 6, got 5" in execution.feedback


async def test_failure_shows_the_programs_own_error_with_its_line(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests("def add(a, b):\n    return a / 0\n", TESTS[:1])
    assert execution.outcome == "wrong"
    assert 'File "program.py", line 2, in add' in execution.feedback
    assert "ZeroDivisionError" in execution.feedback
    assert "/sandbox" not in execution.feedback


async def test_all_failures_are_counted_unless_the_first_ends_it(sandbox: Sandbox) -> None:
    program = "def add(a, b):\n    return 1\n"
    everything = await sandbox.run_tests(program, TESTS)
    assert (everything.tests_passed, everything.feedback.count("failed")) == (1, 2)
    first = await sandbox.run_tests(program, TESTS, stop_early=True)
    assert (first.tests_passed, first.feedback.count("failed")) == (0, 1)


async def test_each_assertion_of_a_check_function_counts(sandbox: Sandbox) -> None:
    check = (
        "def check(candidate):\n"
        "    assert candidate(2, 3) == 5\n"
        "    for i in range(3):\n"
        "        assert candidate(i, i) == 2 * i, 'doubles'\n"
        "    assert candidate(1, 1) == 3\n"
    )
    execution = await sandbox.run_tests(HONEST, [check], entry_point="add")
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 2, 3)
    assert "Test 3 of 3 failed: candidate(1, 1) == 3" in execution.feedback


HELPER = "def double(x):\n    return 2 * x\ndef add(a, b):\n    raise NotImplementedError\n"


async def test_helpers_given_with_the_tests_are_not_the_programs(sandbox: Sandbox) -> None:
    program = "def double(x):\n    return 0\ndef add(a, b):\n    return 0\n"
    tests = [
        HELPER,
        "assert double(add(2, 3)) == 2 * add(4, 1)",
        "assert double(1) == 2",
        "assert candidate(2, 3) == 5",
    ]
    execution = await sandbox.run_tests(program, tests, entry_point="add")
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 2, 3)
    honest = await sandbox.run_tests(HONEST, tests, entry_point="add")
    assert (honest.outcome, honest.tests_total) == ("ok", 3)


async def test_check_function_that_returns_is_one_test(sandbox: Sandbox) -> None:
    check = "def check(candidate):\n    if candidate(2, 3) == 5:\n        return\n    assert False\n"
    execution = await sandbox.run_tests(HONEST, [check], entry_point="add")
    assert (execution.outcome, execution.tests_total) == ("ok", 1)


async def test_missing_function_is_named(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests("def plus(a, b):\n    return a + b\n", TESTS, entry_point="add")
    assert execution.outcome == "error"
    assert "must define `add`; it defines: plus" in execution.feedback


async def test_program_that_does_not_load_shows_its_error(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests(HONEST + "\nboom\n", TESTS)
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("error", 0, 3)
    assert execution.feedback.endswith("NameError: name 'boom' is not defined")


async def test_tests_that_are_no_python_fail(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests(HONEST, ["assert add(1, 1) ==", TESTS[0]])
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 1, 2)
    assert "Test 1 is not valid Python" in execution.feedback


async def test_program_that_ends_during_a_call_is_said_to(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests("import os\ndef add(a, b):\n    os._exit(0)\n", TESTS)
    assert "add(2, 3) ended the program" in execution.feedback


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("while True: pass", "timeout"),
        ("return len('x' * 10**10)", "wrong"),
        ("import ctypes; ctypes.string_at(0)", "killed"),
        ("print('x' * 10**6, flush=True)", "output"),
    ],
)
async def test_outcome_of_a_program_that_is_stopped_while_tested(sandbox: Sandbox, body: str, outcome: str) -> None:
    program = f"def add(a, b):\n    {body}\n"
    execution = await sandbox.run_tests(program, TESTS[:1], limits=RunLimits(timeout=2, memory_mb=128))
    assert (execution.outcome, execution.tests_passed) == (outcome, 0)


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("def f(): return 1, {2: 'x'}, {3}, frozenset(), None", "f() == (1, {2: 'x'}, {3}, frozenset(), None)"),
        ("def f(): return 10**5000", "f() == 10**5000"),
        ("def f(): return float('inf'), -0.0, 1e-320", "f() == (float('inf'), -0.0, 1e-320)"),
        ("def f(): return float('nan')", "f() != f()"),
        ("def f(): return b'\\xff', bytearray(b'x'), 1+2j", "f() == (b'\\xff', bytearray(b'x'), 1+2j)"),
        ("def f(): return range(3), [*range(3)]", "f() == (range(3), [0, 1, 2])"),
        ("def f(): return '\\ud800 ü'", "f() == '\\ud800 ü'"),
        ("from fractions import Fraction\ndef f(): return Fraction(1, 3)", "f() * 3 == 1"),
        ("from decimal import Decimal\ndef f(): return Decimal('0.1')", "str(f()) == '0.1'"),
        ("import datetime\ndef f(): return datetime.date(2024, 2, 29)", "f().day == 29"),
        ("from collections import *\ndef f(): return Counter('aab'), OrderedDict(a=1), deque([1])",
         "f()[0] == {'a': 2, 'b': 1} and f()[1] == {'a': 1} and list(f()[2]) == [1]"),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\ndef f(): return P(1)", "f() == (1,)"),
        ("import enum\nclass C(enum.IntEnum):\n    A = 1\ndef f(): return C.A", "f() == 1"),
        ("import numpy as np\ndef f(): return np.array([[1, 2]]), np.float64(0.5), np.int64(3)",
         "f()[0].tolist() == [[1, 2]] and f()[1] == 0.5 and f()[2] == 3"),
        ("import sympy\ndef f(): return sympy.Integer(5), sympy.Rational(1, 2)", "f()[0] == 5 and f()[1] * 2 == 1"),
    ],
)  # fmt: skip
async def test_values_cross_unchanged(sandbox: Sandbox, program: str, test: str) -> None:
    execution = await sandbox.run_tests(program, [f"assert {test}"])
    assert (execution.outcome, execution.feedback) == ("ok", "")


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
         "    def __len__(self): return len(self.items)",
         ["s = Stack()\ns.push(3)\nassert len(s) == 1", "assert s.items == [3]", "assert isinstance(s, Stack)"]),
        ("class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return V(self.x + o.x)\n"
         "    def __mul__(self, k): return V(self.x * k)\n    __rmul__ = __mul__\n"
         "    def __abs__(self): return abs(self.x)\n"
         "    def __lt__(self, o): return self.x < o.x\n    def __contains__(self, k): return k == self.x\n"
         "    def __eq__(self, o): return self.x == o.x",
         ["assert (V(1) + V(2)).x == 3", "assert V(2) * 3 == 3 * V(2) == V(6)", "assert abs(V(-2)) == 2",
          "assert V(1) < V(2)", "assert max([V(1), V(3), V(2)]).x == 3", "assert 4 in V(4) and 5 not in V(4)",
          "assert V(1) == V(1)", "assert V(1) != V(2)"]),
        ("def sort(l): l.sort()", ["l = [3, 1, 2]\nsort(l)\nassert l == [1, 2, 3]"]),
        ("def fill(d): d['a'] = 1", ["d = {}\nfill(d)\nassert d == {'a': 1}"]),
        ("def apply(f, x): return f(x)",
         ["assert apply(lambda x: x + 1, 2) == 3", "assert apply(len, 'abc') == 3", "assert apply(str, 5) == '5'",
          "seen = []\napply(seen.append, 4)\nassert seen == [4]"]),
        ("def adder(n): return lambda x: x + n", ["assert adder(2)(3) == 5"]),
        ("def count():\n    n = 0\n    while True:\n        n += 1\n        yield n",
         ["c = count()\nassert [next(c), next(c)] == [1, 2]"]),
        ("class Own(ValueError): pass\ndef f(): raise Own('bad', 3)",
         ["try:\n    f()\n    assert False\nexcept Own as error:\n    assert error.args == ('bad', 3)",
          "try:\n    f()\n    assert False\nexcept ValueError:\n    pass"]),
        ("def f(x):\n    if x < 0: raise ValueError('low')\n    return x",
         ["try:\n    f(-1)\n    assert False\nexcept ValueError as error:\n    assert str(error) == 'low'"]),
        ("LIMIT = 7\ndef f(*, n=LIMIT): return n",
         ["assert f() == LIMIT", "assert f(n=2) == 2", "assert f.__name__ == 'f'"]),
        ("import math, numpy as np\ndef f(): return math.pi",
         ["assert math.isclose(f(), 3.14159, rel_tol=1e-5)", "assert np.allclose(f(), np.pi)"]),
        ("def sum(values): return 'own'", ["assert candidate([1]) == 'own'", "assert sum([1]) == 'own'"]),
    ],
)  # fmt: skip
async def test_what_tests_may_do(sandbox: Sandbox, program: str, tests: list[str]) -> None:
    entry = "sum" if "candidate" in str(tests) else None
    execution = await sandbox.run_tests(program, tests, entry_point=entry)
    assert (execution.outcome, execution.feedback) == ("ok", "")


async def test_what_the_program_prints_is_kept(sandbox: Sandbox) -> None:
    execution = await sandbox.run_tests("def add(a, b):\n    print('adding')\n    return a + b\n", TESTS)
    assert (execution.outcome, execution.stdout) == ("ok", "adding\n" * 3)


async def test_main_block_of_the_program_does_not_run(sandbox: Sandbox) -> None:
    program = HONEST + "if __name__ == '__main__':\n    add(int(input()), 1)\n"
    assert (await sandbox.run_tests(program, TESTS)).outcome == "ok"


@pytest.mark.skipif(not (SHARED / "humaneval_80.jsonl").exists(), reason="no shared data here")
async def test_canonical_solutions_of_real_problems_pass(sandbox: Sandbox) -> None:
    rows = [json.loads(line) for line in (SHARED / "humaneval_80.jsonl").read_text().splitlines()]
    failed = []
    for row in rows:
        program = row["prompt"] + row["canonical_solution"]
        execution = await sandbox.run_tests(program, [row["test"]], entry_point=row["entry_point"])
        if execution.outcome != "ok":
            failed.append((row["task_id"], execution.feedback))
    assert len(rows) == 80
    assert failed == []


@pytest.mark.skipif(not (SHARED / "humaneval_80.jsonl").exists(), reason="no shared data here")
async def test_empty_solutions_of_real_problems_fail(sandbox: Sandbox) -> None:
    rows = [json.loads(line) for line in (SHARED / "humaneval_80.jsonl").read_text().splitlines()][:20]
    for row in rows:
        execution = await sandbox.run_tests(row["prompt"] + "    pass\n", [row["test"]], entry_point=row["entry_point"])
        assert execution.outcome == "wrong", row["task_id"]
