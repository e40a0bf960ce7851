"""LiveCodeBench: encoded tests, decoded without running anything; versions and the date window."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coda.data import livecodebench
from coda.data.benchmarks import load
from coda.data.grading import grade
from coda.data.livecodebench import Edition, decode, unseal
from coda.errors import DataError

STDIN = [{"input": "2 3\n", "output": "5\n", "testtype": "stdin"}]
CALLS = [{"input": '[1, 2]\n"a"', "output": "[1, 2, 3]", "testtype": "functional"}]


def encode(tests: object) -> str:
    """As the data set does it: base64 of zlib of a pickle of a JSON text."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def row(number: int = 0, day: str = "2024-10-05T00:00:00", **fields: Any) -> dict[str, Any]:
    return {
        "question_id": f"q{number}", "question_content": f"Add two numbers ({number}).", "contest_date": day,
        "starter_code": "",
        "public_test_cases": json.dumps(STDIN), "private_test_cases": encode(STDIN), "metadata": "{}", **fields,
    }  # fmt: skip


def test_private_tests_are_decoded() -> None:
    assert decode(encode(STDIN)) == STDIN
    assert decode(json.dumps(STDIN)) == STDIN


class Attack:
    """What a poisoned data set would hold."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, ("pwned",)


def test_a_pickle_that_names_code_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    poisoned = base64.b64encode(zlib.compress(pickle.dumps(Attack()))).decode()
    with pytest.raises(DataError, match=r"cannot be decoded \(it names posix.mkdir, and may hold a text only\)"):
        decode(poisoned)
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livecodebench, "LARGEST_TESTS", 1 << 20)
    with pytest.raises(DataError, match="unpack to more than 1 MiB: refused"):
        decode(encode([{"input": "0" * (2 << 20), "output": ""}]))


@pytest.mark.parametrize(
    "encoded", ["", "%%%", base64.b64encode(b"no zlib").decode(), encode({"input": 1}), encode([1]), encode(7)]
)
def test_other_contents_are_refused(encoded: str) -> None:
    with pytest.raises(DataError, match="Was the schema changed"):
        decode(encoded)


def test_calls_become_assertions_with_plain_values() -> None:
    tests, cases = unseal(json.dumps({"function": "solve", "tests": encode(CALLS)}))
    assert tests == ("assert Solution().solve([1, 2], 'a') == [1, 2, 3]",)
    assert cases == ()


def test_values_of_calls_are_read_as_json_and_never_run() -> None:
    with pytest.raises(ValueError):
        unseal(json.dumps({"function": "solve", "tests": encode([{"input": "__import__('os')", "output": "1"}])}))


@pytest.mark.sandbox
def test_programs_are_graded_with_public_and_private_tests(write: Any) -> None:
    private = encode([{"input": "7 8\n", "output": "15\n", "testtype": "stdin"}])
    (example,) = load("livecodebench", data_file=write(row(private_test_cases=private))).examples
    assert "Read the input from standard input" in example.problem.text
    assert grade(example, "print(sum(map(int, input().split())))").feedback == "All 2 tests pass."
    assert "expected:\n15\ngot:\n5" in grade(example, "print(5)").feedback


@pytest.mark.sandbox
def test_methods_are_graded_with_the_usual_imports_there(write: Any) -> None:
    starter = "class Solution:\n    def solve(self, xs: List[int], s: str) -> List[int]:\n        "
    fields = {"starter_code": starter, "metadata": '{"func_name": "solve"}'}
    tests = {"public_test_cases": json.dumps(CALLS), "private_test_cases": encode(CALLS)}
    (example,) = load("livecodebench", data_file=write(row(**fields, **tests))).examples
    assert example.problem.tests == ("assert Solution().solve([1, 2], 'a') == [1, 2, 3]",)
    assert "Complete this code" in example.problem.text
    assert grade(example, starter + "return xs + [math.ceil(2.5)]\n").correct
    assert not grade(example, starter + "return xs\n").correct


def test_a_window_keeps_the_problems_of_its_days(write: Any) -> None:
    days = ("2024-09-30", "2024-10-01", "2025-02-28", "2025-03-01")
    file = write(*(row(n, f"{day}T12:00:00") for n, day in enumerate(days)))

    def ids(name: str) -> list[str]:
        return [example.id for example in load(name, data_file=file).examples]

    assert ids("livecodebench") == ["q0", "q1", "q2", "q3"]
    assert ids("livecodebench:release_v5:2024-10-01:2025-02-28") == ["q1", "q2"]
    assert ids("livecodebench::2025-01-01") == ["q2", "q3"]
    assert ids("livecodebench:v6::2024-10-01") == ["q0", "q1"]


def test_the_version_is_the_data_sets_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load_dataset(path: str, name: str, **kwargs: Any) -> list[dict[str, Any]]:
        asked.append((path, name))
        return [row()]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    load("livecodebench")
    found = load("livecodebench:release_v5:2024-10-01")
    assert asked == [("lighteval/code_generation_lite", "release_v6"), ("lighteval/code_generation_lite", "release_v5")]
    assert found.name == "livecodebench:release_v5:2024-10-01"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (["v5", "October"], "'October' is no day. Write it like 2024-10-01"),
        (["v5", "2025-01-01", "2024-01-01"], "the window from 2025-01-01 to 2024-01-01 is empty"),
        (["v5", "", "", "x"], "at most three parts"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(parts: list[str], told: str) -> None:
    with pytest.raises(DataError, match=told):
        Edition.parse(parts)
