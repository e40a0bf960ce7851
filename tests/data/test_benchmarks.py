"""Loading benchmarks by name, and users' own files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from coda.data.benchmarks import load, names
from coda.data.splits import SHARES, split_of
from coda.errors import DataError

ROW = {"problem": "What is 6 * 7?", "answer": "42"}


def test_a_bundled_benchmark_loads_by_name_and_split() -> None:
    found = load("words", split="test")
    assert (found.name, found.split, found.source) == ("words", "test", "bundled")
    assert {example.split for example in found.examples} == {"test"}
    assert found.licence


def test_the_whole_is_all_splits() -> None:
    whole = load("words")
    assert whole.split == "all"
    assert whole == load("words", split="all")
    assert len(whole.examples) == sum(len(load("words", split=s).examples) for s in ("train", "validation", "test"))


def test_the_digest_stands_for_the_content() -> None:
    assert load("words", split="test").digest == load("words", split="test").digest
    digests = {load("words", split=split).digest for split in (None, "train", "validation", "test")}
    assert len(digests) == 4


def test_the_digest_sees_the_reference(write: Any) -> None:
    one = load(str(write(ROW)))
    other = load(str(write({**ROW, "answer": "41"})))
    assert one.digest != other.digest


def test_problems_that_are_nearly_the_same_in_other_splits_are_told_when_a_split_is_loaded(write: Any) -> None:
    story = (
        "Ana goes to the market on Monday and buys {n} red apples, then she walks home and eats two of them at once "
        "while her brother, who does not care for apples at all, looks out of the window and waits for the rain to end."
    )
    rows = [
        {**ROW, "problem": story.format(n=12), "split": "train"},
        {**ROW, "problem": story.format(n=15), "split": "test"},
        {**ROW, "problem": "How many legs do four spiders have?", "split": "test"},
    ]
    file = str(write(*rows))
    (note,) = load(file, split="test").notes
    assert "1 pair(s)" in note
    assert "mine-0001 (train) and mine-0002 (test)" in note
    assert f"coda data check {file}" in note
    assert load(file).notes == ()
    assert load("words", split="test").notes == ()


def test_a_limit_draws_with_a_seed_and_keeps_the_order() -> None:
    everything = [example.id for example in load("words", split="test").examples]
    few = [example.id for example in load("words", split="test", limit=10, seed=1).examples]
    assert few == [identity for identity in everything if identity in few]
    assert len(few) == 10
    assert few == [example.id for example in load("words", split="test", limit=10, seed=1).examples]
    assert few != [example.id for example in load("words", split="test", limit=10, seed=2).examples]
    assert len(load("words", split="test", limit=10_000).examples) == len(everything)


def test_an_unknown_name_lists_near_ones() -> None:
    with pytest.raises(DataError, match=r"There is no benchmark 'wrods'. Did you mean words\? Known are: words, "):
        load("wrods")
    with pytest.raises(DataError, match="Did you mean gsm8k"):
        load("gsm8")


def test_an_unknown_split_and_an_empty_limit_are_refused() -> None:
    with pytest.raises(DataError, match=r"There is no split 'dev'. Splits are: train, validation, test, all"):
        load("words", split="dev")
    with pytest.raises(DataError, match="A limit of 0 leaves no problems"):
        load("words", limit=0)


def test_names_are_those_of_bundled_and_public_benchmarks() -> None:
    bundled = {"words", "science", "functions"}
    public = {"gsm8k", "math500", "aime24", "aime25", "gpqa-diamond", "mmlu-pro", "arc-challenge"}
    assert bundled | public | {"humaneval", "mbpp", "livecodebench"} <= set(names())


def test_a_file_of_ones_own_needs_problem_and_answer_only(write: Any) -> None:
    found = load(str(write(ROW, {"problem": "And 6 + 7?", "answer": 13})))
    first, second = found.examples
    assert found.name == "mine"
    assert (first.id, first.problem.task, first.answer) == ("mine-0001", "math", "42")
    assert (second.id, second.answer) == ("mine-0002", "13")


def test_the_task_follows_from_the_fields(write: Any) -> None:
    rows = (
        {"problem": "Which?", "choices": ["one", "two"], "answer": "two"},
        {"problem": "Write f.", "tests": ["assert f() == 1"]},
        {"problem": "Who?", "answer": "Ada Lovelace", "task": "text"},
    )
    tasks = [example.problem.task for example in load(str(write(*rows))).examples]
    assert tasks == ["choice", "code", "text"]


def test_all_fields_of_a_row_are_kept(write: Any) -> None:
    row = {
        "id": "c1", "problem": "Write f.", "task": "code", "tests": "assert f() == 1", "entry_point": "f",
        "split": "train",
        "hidden_tests": ["assert f() != 2"], "solution": "def f(): return 1", "program": "def f(): return 1",
        "io": [{"stdin": "1\n", "expected": "2\n"}], "origin": "unknown fields are left alone",
    }  # fmt: skip
    (example,) = load(str(write(row))).examples
    assert (example.id, example.split, example.answer) == ("c1", "train", "def f(): return 1")
    assert (example.problem.tests, example.problem.entry_point) == (("assert f() == 1",), "f")
    assert example.hidden_tests == ("assert f() == 1", "assert f() != 2")
    assert (example.io[0].stdin, example.io[0].expected) == ("1\n", "2\n")


def test_splits_of_a_file_are_fixed_by_content(write: Any) -> None:
    rows = [{"problem": f"What is {n} + 1?", "answer": n + 1} for n in range(200)]
    straight = {example.problem.text: example.split for example in load(str(write(*rows))).examples}
    reversed_ = {example.problem.text: example.split for example in load(str(write(*rows[::-1]))).examples}
    assert straight == reversed_
    shares = {name: sum(split == name for split in straight.values()) / 200 for name in SHARES}
    assert all(abs(shares[name] - SHARES[name]) < 0.1 for name in SHARES)


def test_copies_of_a_problem_are_never_in_different_splits() -> None:
    assert split_of("What is  6 * 7?") == split_of("what is 6 * 7?\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (['{"problem": "x"'], r"mine.jsonl, line 1, column 16: this is not JSON"),
        (["[1]"], "line 1: this is list, not an object"),
        ([ROW, {"problem": "x"}], r"line 2, field answer: is missing. The row has: problem."),
        ([ROW, "", {"answer": "1"}], "line 3, field problem: is missing"),
        ([{**ROW, "problem": "  "}], "line 1, field problem: is empty"),
        ([{**ROW, "problem": 3.5, "answer": True}], "field answer: must be a text, not a truth value"),
        ([{**ROW, "answer": ["1"]}], "field answer: must be a text, not a list"),
        ([{**ROW, "task": "maths"}], "field task: is 'maths'; it must be one of math, choice, code, text"),
        ([{**ROW, "split": "dev"}], "field split: is 'dev'; it must be one of train, validation, test"),
        ([{**ROW, "choices": [1, {}]}], "field choices: must be a list of texts"),
        ([{**ROW, "io": [{"in": 1}]}], 'field io: must be a list of {"stdin": …, "expected": …}'),
        ([{**ROW, "id": "a"}, {**ROW, "id": "a"}], "line 2: id 'a' stands already at .*line 1"),
        ([{**ROW, "answer": "about five or so"}], "field answer: 'about five or so' is no number, expression or name"),
        ([{**ROW, "choices": ["a", "b"], "answer": "c"}], "field answer: 'c' names none of the options"),
        ([{**ROW, "choices": ["a"]}], "at least two options"),
        ([{**ROW, "choices": list("abcdefghijk")}], "at most ten options"),
        ([{"problem": "Write f.", "task": "code"}], 'a code problem needs "tests", "hidden_tests" or "io"'),
        ([], "has no rows"),
    ],
)
def test_a_malformed_file_is_refused_with_line_and_field(write: Any, rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(str(write(*rows)))


@pytest.mark.parametrize(
    "answer", ["42", "1/2", r"\frac{\pi}{2}", "x^2 + 1", "east", r"\text{not possible}", "(3, 4)", "10%"]
)
def test_usual_references_can_be_graded(write: Any, answer: str) -> None:
    assert load(str(write({**ROW, "answer": answer}))).examples[0].answer == answer


def test_missing_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"There is no file nowhere.jsonl"):
        load("nowhere.jsonl")
    other = tmp_path / "data.txt"
    other.write_text("x")
    with pytest.raises(DataError, match="files of this kind are not read"):
        load(str(other))
    binary = tmp_path / "data.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="must be a text file in UTF-8"):
        load(str(binary))
    table = tmp_path / "data.parquet"
    table.write_bytes(b"no table")
    with pytest.raises(DataError, match="cannot be read"):
        load(str(table))


def test_csv_and_parquet_are_read_like_jsonl(tmp_path: Path, write: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    rows: list[dict[str, Any]] = [
        {"id": "007", "problem": "What is 6 * 7?", "answer": "42.0"},
        {"id": "b", "problem": "Which, one or two?", "answer": "two", "choices": ["one", "two"]},
    ]
    with (tmp_path / "mine.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[1]))
        writer.writeheader()
        writer.writerows({**row, "choices": json.dumps(row["choices"]) if "choices" in row else ""} for row in rows)
    parquet.write_table(pyarrow.Table.from_pylist(rows[::-1]).take([1, 0]), tmp_path / "mine.parquet")
    expected = load(str(write(*rows))).digest
    assert load(str(tmp_path / "mine.csv")).digest == expected
    assert load(str(tmp_path / "mine.parquet")).digest == expected


def test_a_local_file_can_stand_in_for_a_bundled_benchmark(write: Any) -> None:
    found = load("words", data_file=write(ROW))
    assert (found.name, len(found.examples)) == ("words", 1)
    assert found.source.endswith("mine.jsonl")
