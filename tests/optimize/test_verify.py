"""Recorded answers: read, graded, compared with their labels, and chosen among without an Engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coda.errors import DataError
from coda.optimize.recorded import read_recorded
from coda.optimize.verify import Verification, averify
from coda.program.types import Attempt, Problem

Write = Callable[..., Path]
SHARED = Path(os.environ.get("CODA_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
real = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no recorded answers at {SHARED}; see CODA_SHARED_DATA")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*rows: dict[str, Any], name: str = "samples.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file

    return write


def samples(*texts: str, correct: bool | None = None) -> list[dict[str, Any]]:
    return [{"text": text} if correct is None else {"text": text, "correct": correct} for text in texts]


async def verified(file: Path, **options: Any) -> Verification:
    return await averify(read_recorded(file, **options))


async def test_shares_are_counted_over_problems(write: Write) -> None:
    found = await verified(
        write(
            {"problem": "6 * 7?", "answer": "42", "samples": samples("It is 42.", "41", "The answer is 42", "So 40")},
            {"problem": "1/2 + 1/4?", "answer": "3/4", "samples": samples("2/6", "2/6", r"\boxed{0.75}", "1")},
            {"problem": "1 + 1?", "answer": "2", "samples": samples("3", "4", "5", "I do not know.")},
        )
    )
    assert (found.n, found.samples) == (3, 12)
    assert found.pass_at_1 == pytest.approx((0.5 + 0.25 + 0) / 3)
    assert found.majority == pytest.approx(1 / 3)
    assert found.oracle == pytest.approx(2 / 3)
    assert found.strategies == {"majority": found.majority}
    low, high = found.ci95["oracle"]
    assert low < found.oracle < high
    assert (found.labelled, found.label_agreement, found.disagreements) == (0, None, ())


async def test_equal_answers_vote_together_however_they_are_written(write: Write) -> None:
    texts = ("0.5", r"\boxed{\frac12}", "answer: 1/2", "7", "7")
    found = await verified(write({"problem": "?", "answer": "0.50", "samples": samples(*texts)}))
    assert found.majority == 1.0


async def test_labels_are_compared_and_differences_explained(write: Write) -> None:
    labelled = [*samples("10000", "so 9999", correct=True), *samples("10{,}000", correct=False), *samples("1"), "2"]
    row = {"id": "p", "problem": "?", "answer": "10,000", "samples": labelled}
    found = await verified(write(row))
    assert found.labelled == 3
    assert found.label_agreement == pytest.approx(1 / 3)
    first, second = found.disagreements
    assert (first.id, first.sample, first.answer, first.graded, first.labelled) == ("p", 1, "9999", False, True)
    assert first.feedback == "Expected 10000, got 9999."
    assert (second.answer, second.graded, second.labelled) == ("10000", True, False)


async def test_rows_with_an_id_take_their_problem_from_a_benchmark(write: Write) -> None:
    own = write({"id": "x1", "problem": "6 * 7?", "answer": "42"}, name="own.jsonl")
    found = await verified(write({"id": "x1", "samples": samples("42")}), benchmark=str(own))
    assert found.pass_at_1 == 1.0
    found = await verified(write({"id": "x1", "samples": samples("42")}), benchmark="words", data_file=own)
    assert found.pass_at_1 == 1.0


async def test_other_ways_to_choose_are_put_beside(write: Write) -> None:
    async def last(problem: Problem, attempts: tuple[Attempt, ...]) -> int | None:
        return len(attempts) - 1

    async def none(problem: Problem, attempts: tuple[Attempt, ...]) -> int | None:
        return None

    recorded = read_recorded(write({"problem": "6 * 7?", "answer": "42", "samples": samples("41", "41", "42")}))
    found = await averify(recorded, {"last": last, "none": none})
    assert found.strategies == {"majority": 0.0, "last": 1.0, "none": 0.0}


async def test_choices_and_texts_are_verified_too(write: Write) -> None:
    cell = {"problem": "Where?", "choices": ["nucleus", "mitochondria"], "answer": "B"}
    river = {"problem": "Which river?", "answer": "The Nile", "task": "text"}
    found = await verified(
        write(
            {**cell, "samples": samples("I think of (A). No: the answer is (B).", "mitochondria", "A")},
            {**river, "samples": samples("Answer: the Nile", "Answer: Amazon", "nile")},
        )
    )
    assert (found.pass_at_1, found.majority) == (pytest.approx(2 / 3), 1.0)


@pytest.mark.sandbox
async def test_programs_are_run(write: Write) -> None:
    row = {"problem": "Write f.", "tests": ["assert f(2) == 4"], "samples": samples(
        "```python\ndef f(x):\n    return 2 * x\n```", "```python\ndef f(x):\n    return x\n```", "I cannot.",
    )}  # fmt: skip
    assert (await verified(write(row))).pass_at_1 == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"problem": "?", "answer": "1"}, r"line 1, field samples: it must be a list of at least one {\"text\": …}"),
        ({"problem": "?", "answer": "1", "samples": []}, "field samples: it must be a list"),
        ({"problem": "?", "answer": "1", "samples": [{"txt": "1"}]}, "line 1, sample 1: it must be"),
        ({"problem": "?", "answer": "1", "samples": ["1", {"text": "1", "correct": 1}]}, "sample 2: it must be"),
        ({"problem": "?", "samples": ["1"]}, "field answer: is missing"),
        ({"samples": ["1"]}, "neither a problem nor an id"),
        ({"id": "a", "samples": ["1"]}, "an id and no problem. Say which benchmark"),
    ],
)
def test_malformed_rows_are_refused(write: Write, row: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        read_recorded(write(row))


def test_unknown_and_repeated_ids_and_empty_files_are_refused(write: Write) -> None:
    with pytest.raises(DataError, match=r"benchmark words has no problem 'nope'. Its ids are like words-train-000"):
        read_recorded(write({"id": "nope", "samples": ["1"]}), benchmark="words")
    with pytest.raises(DataError, match="line 2: id 'words-test-000' stands there already"):
        read_recorded(write(*[{"id": "words-test-000", "samples": ["1"]}] * 2), benchmark="words")
    with pytest.raises(DataError, match="has no rows"):
        read_recorded(write())


@real
async def test_recorded_answers_to_math_are_graded_as_labelled() -> None:
    """Of 400 labels one differs: 10{,}000 and 10000 are the same number, the label says wrong."""
    found = await verified(SHARED / "recorded_math_50x8.jsonl")
    assert (found.n, found.samples, found.labelled) == (50, 400, 400)
    assert [(each.answer, each.expected, each.labelled) for each in found.disagreements] == [
        ("10000", "10{,}000", False)
    ]
    assert (found.pass_at_1, found.majority, found.oracle) == (0.88, 0.9, 0.98)


@real
async def test_recorded_answers_to_gsm8k_are_graded_as_labelled() -> None:
    found = await verified(SHARED / "recorded_gsm8k_300x4.jsonl")
    assert (found.n, found.samples, found.label_agreement) == (300, 1200, 1.0)
    assert (found.majority, found.oracle) == (pytest.approx(139 / 300), pytest.approx(199 / 300))
