"""The public benchmarks: schemas, splits, the order of options. Rows are made up, or come from local files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from coda.data.benchmarks import load
from coda.data.catalog import CATALOG
from coda.data.splits import sizes
from coda.data.survey import catalogue, check
from coda.errors import DataError

Rows = list[dict[str, Any]]
Serve = Callable[..., list[tuple[Any, ...]]]

GPQA = {
    "Record ID": "rec1", "Question": "Which? ", "Correct Answer": " right\n", "Incorrect Answer 1": "wrong 1",
    "Incorrect Answer 2": "wrong 2", "Incorrect Answer 3": "wrong 3",
}  # fmt: skip
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'import math\n\ndef root(x):\n    """\n    >>> root(9)\n    3\n    >>> root(2)\n    an error\n    """\n',
    "entry_point": "root",
    "canonical_solution": "    return math.isqrt(x)\n",
    "test": "def check(candidate):\n    assert candidate(16) == 4\n",
}
MBPP = {
    "task_id": 7, "prompt": "Write a function to add.", "code": "def add(a, b):\r\n    return a + b",
    "test_imports": ["import math"],
    "test_list": ["assert add(1, 1) == 2", "assert add(1, 2) == 3"],
}  # fmt: skip


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Let the hub serve these rows, by split; returns what it was asked for."""

    def serve(**splits: Rows) -> list[tuple[Any, ...]]:
        asked: list[tuple[Any, ...]] = []

        def load_dataset(path: str, name: str | None = None, *, split: str, revision: str | None) -> datasets.Dataset:
            asked.append((path, name, split, revision))
            return datasets.Dataset.from_list(splits[split])

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        monkeypatch.setattr(datasets, "get_dataset_split_names", lambda *args, **kwargs: list(splits))
        return asked

    return serve


def test_every_declaration_pins_a_commit_and_names_a_licence() -> None:
    for declaration in CATALOG.values():
        assert re.fullmatch("[0-9a-f]{40}", declaration.source.revision or "")
        assert declaration.licence
        assert all(sum(shares.values()) == pytest.approx(1) for shares in declaration.parts.values())


def test_the_catalogue_lists_all_without_loading_any() -> None:
    entries = {entry.name: entry for entry in catalogue()}
    assert entries["gpqa-diamond"].gated
    assert entries["words"].source == "bundled"
    assert entries["gsm8k"].source == "hf:openai/gsm8k:main@740312add88f"
    assert (entries["humaneval"].task, entries["science"].task, entries["words"].task) == ("code", "choice", "math")


def test_gsm8k_keeps_the_official_test_split_and_deals_out_the_other(serve: Serve) -> None:
    train = [{"question": f"What is {n} + 1?", "answer": f"It is {n}+1.\n#### {n + 1:,}"} for n in range(3000, 3100)]
    asked = serve(train=train, test=[{"question": "What is 6 * 7?", "answer": "#### 42"}])
    whole = load("gsm8k")
    found = sizes(whole.examples)
    assert found["test"] == 1
    assert 60 < found["train"] < 95
    assert whole.examples[0].answer == "3,001"
    assert asked == [("openai/gsm8k", "main", part, CATALOG["gsm8k"].source.revision) for part in ("train", "test")]


def test_only_the_splits_that_are_wanted_are_read(serve: Serve) -> None:
    asked = serve(train=[], test=[{"question": "What is 6 * 7?", "answer": "#### 42"}])
    found = load("gsm8k", split="test")
    assert [part for _, _, part, _ in asked] == ["test"]
    assert [(example.id, example.answer) for example in found.examples] == [("gsm8k-test-00001", "42")]
    assert found.source == "hf:openai/gsm8k:main@740312add88f"


def test_all_of_aime_is_for_testing(serve: Serve) -> None:
    serve(train=[{"id": 60, "problem": "Find it.", "answer": "204", "url": "…"}])
    (example,) = load("aime24").examples
    assert (example.id, example.answer, example.split) == ("aime24-60", "204", "test")
    with pytest.raises(DataError, match=r"has no problems in its train split. Take another split, or"):
        load("aime24", split="train")


def test_the_options_of_gpqa_are_shuffled_with_a_seed(serve: Serve) -> None:
    serve(train=[{**GPQA, "Record ID": f"rec{n}", "Question": f"Which of {n}?"} for n in range(200)])
    examples = load("gpqa-diamond").examples
    assert all(example.problem.choices["ABCD".index(example.answer)] == "right" for example in examples)
    places = Counter(example.answer for example in examples)
    assert min(places.values()) > 30
    assert load("gpqa-diamond").examples == examples
    other = load("gpqa-diamond", seed=1).examples
    assert [example.problem.choices for example in other] != [example.problem.choices for example in examples]
    assert [(example.id, example.split) for example in other] == [(example.id, example.split) for example in examples]
    few = load("gpqa-diamond", limit=5).examples
    assert set(few) <= set(examples)


def test_choice_schemas(serve: Serve) -> None:
    serve(dev=[], validation=[], test=[{"question": "Which?", "choices": ["a", "b"], "answer": 1, "subject": "law"}])
    (example,) = load("mmlu", split="test").examples
    assert (example.problem.choices, example.answer) == (("a", "b"), "B")
    row = {"question_id": 70, "question": "Which?", "options": list("abcdefghij"), "answer": "J", "answer_index": 9}
    serve(validation=[row], test=[])
    (example,) = load("mmlu-pro", split="train").examples
    assert (example.id, example.answer, len(example.problem.choices)) == ("mmlu-pro-70", "J", 10)
    choices = {"text": ["iron", "wood", "tin", "ice"], "label": ["1", "2", "3", "4"]}
    serve(test=[{"id": "MCAS_1", "question": "Which burns?", "choices": choices, "answerKey": "2"}])
    (example,) = load("arc-challenge", split="test").examples
    assert (example.id, example.answer, example.problem.choices[1]) == ("MCAS_1", "B", "wood")


def test_humaneval_shows_the_docstrings_examples_as_far_as_they_are_values(serve: Serve) -> None:
    serve(test=[HUMANEVAL])
    (example,) = load("humaneval").examples
    assert example.problem.tests == ("assert root(9) == 3",)
    assert example.problem.entry_point == "root"
    assert "def root(x):" in example.problem.text
    assert "isqrt" not in example.problem.text
    assert example.hidden_tests[-1] == HUMANEVAL["test"]
    assert example.answer == example.preamble + HUMANEVAL["canonical_solution"]


def test_mbpp_shows_one_test_and_grades_with_all(serve: Serve) -> None:
    serve(train=[MBPP])
    (example,) = load("mbpp", split="train").examples
    assert example.problem.tests == ("assert add(1, 1) == 2",)
    assert example.hidden_tests == tuple(MBPP["test_list"])  # type: ignore[arg-type]
    assert example.program == "def add(a, b):\n    return a + b"
    assert example.preamble == "import math\n"


def test_any_data_set_of_the_hub_with_usual_columns_can_be_used(serve: Serve) -> None:
    rows = [
        {"question": "Which?", "options": ["a", "b"], "answer": 1, "problem": None},
        {"question": "Which then?", "options": ["a", "b"], "answer": 0, "problem": None},
    ]
    asked = serve(train=rows[:1], test=rows[1:])
    found = load("hf:owner/name@abc:config", split="test")
    assert asked == [("owner/name", "config", "test", "abc")]
    (example,) = found.examples
    assert (example.problem.text, example.problem.task, example.answer) == ("Which then?", "choice", "A")


def test_a_data_set_with_one_split_is_dealt_out(serve: Serve) -> None:
    serve(train=[{"problem": f"What is {n}?", "answer": str(n)} for n in range(100)])
    assert min(sizes(load("hf:owner/name").examples).values()) > 5


def test_a_data_set_without_usual_columns_says_what_is_missing(serve: Serve) -> None:
    serve(test=[{"text": "Which?", "label": 1}])
    with pytest.raises(DataError, match=r"hf:owner/name, test row 1, field problem: is missing. The row has: text"):
        load("hf:owner/name")


def test_a_changed_schema_is_told(serve: Serve) -> None:
    serve(test=[{"query": "What is 6 * 7?", "answer": "42"}])
    with pytest.raises(DataError, match=r"there is no column 'question'; there are 'query', 'answer'. This"):
        load("gsm8k", split="test")


def test_a_row_that_cannot_be_read_is_told(serve: Serve) -> None:
    row = {"id": "x", "question": "Which?", "choices": {"text": ["a"], "label": ["A"]}, "answerKey": "E"}
    serve(test=[row])
    with pytest.raises(DataError, match=r"test row 1: this row cannot be read \(ValueError: 'E' is not in"):
        load("arc-challenge", split="test")


def test_versions_are_for_livecodebench_only() -> None:
    with pytest.raises(DataError, match="Benchmark gsm8k has no versions: 'v2' means nothing"):
        load("gsm8k:v2")


@pytest.mark.parametrize(
    ("name", "file", "n"),
    [
        ("aime24", "aime24.jsonl", 30),
        ("gsm8k", "gsm8k_test_200.jsonl", 200),
        ("gsm8k", "gsm8k_train_300.jsonl", 300),
        ("mmlu", "mmlu_stem_300.jsonl", 300),
        ("humaneval", "humaneval_80.jsonl", 80),
    ],
)
def test_real_files_load_in_their_own_schemas(shared_data: Path, name: str, file: str, n: int) -> None:
    report = check(name, shared_data / file)
    assert sum(report.sizes.values()) == n
    assert report.ungradable == {}
    assert report.repeated == ()


def test_a_file_of_another_benchmark_is_told(shared_data: Path) -> None:
    with pytest.raises(DataError, match="there is no column 'task_id', 'prompt'"):
        load("humaneval", data_file=shared_data / "aime24.jsonl")
