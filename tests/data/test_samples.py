"""The benchmarks that ship with the project."""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter

import pytest

from coda.data import words
from coda.data.benchmarks import load
from coda.data.bundled import BUNDLED, sample_file
from coda.data.grading import agrade
from coda.data.splits import sizes
from coda.data.survey import check


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("words", {"train": 120, "validation": 60, "test": 80}),
        ("science", {"train": 12, "validation": 10, "test": 16}),
        ("functions", {"train": 10, "validation": 6, "test": 12}),
    ],
)
def test_every_split_is_large_enough(name: str, least: dict[str, int]) -> None:
    found = sizes(load(name).examples)
    assert all(found[split] >= n for split, n in least.items())  # type: ignore[index]


@pytest.mark.parametrize("name", BUNDLED)
def test_no_problem_is_repeated_nearly_repeated_or_ungradable(name: str) -> None:
    assert check(name).sound


@pytest.mark.parametrize("name", BUNDLED)
def test_programs_are_for_training_only(name: str) -> None:
    examples = load(name).examples
    assert all(example.program is None for example in examples if example.split != "train")


def test_words_are_made_anew_byte_for_byte() -> None:
    assert sample_file("words").read_text("utf-8") == words.text()


def test_another_seed_makes_other_words() -> None:
    assert words.text(1) != words.text(2)


def test_no_operation_with_its_numbers_occurs_twice_in_words() -> None:
    """Nor in another order: a model that has learned 3 + 12 knows 12 + 3."""
    seen = Counter((tuple(sorted(re.findall(r"\d+", row["problem"]))), row["answer"]) for row in words.rows())
    assert max(seen.values()) == 1


def test_a_program_of_words_prints_its_answer() -> None:
    for example in load("words", split="train").examples:
        assert example.program is not None
        expression = example.program.removeprefix("print(").removesuffix(")")
        assert re.fullmatch(r"[\d +*()-]+", expression)
        assert str(eval(compile(ast.parse(expression, mode="eval"), "words", "eval"))) == example.answer


def test_words_use_small_numbers_and_have_whole_positive_answers() -> None:
    examples = load("words").examples
    numbers = [int(number) for example in examples for number in re.findall(r"\d+", example.problem.text)]
    assert max(numbers) < 100
    assert all(example.answer.isdigit() and int(example.answer) > 0 for example in examples)


def test_words_are_told_in_many_ways() -> None:
    def shape(text: str) -> str:
        """A wording without its numbers, names and objects."""
        things = "|".join(word for pair in words.THINGS for word in pair)
        return re.sub(rf"\d+|\b(?:{'|'.join(words.PEOPLE)}|{things})\b", "_", text, flags=re.IGNORECASE)

    assert len({shape(example.problem.text) for example in load("words").examples}) >= 25


def test_the_right_option_of_science_stands_everywhere_equally_often() -> None:
    for split in ("train", "validation", "test"):
        places = Counter(example.answer for example in load("science", split=split).examples)
        assert set(places) == set("ABCD")
        assert max(places.values()) - min(places.values()) <= 1


def test_science_questions_have_four_different_options() -> None:
    examples = load("science").examples
    assert len(examples) == 40
    assert all(len(set(example.problem.choices)) == 4 for example in examples)


def test_functions_have_visible_and_at_least_four_hidden_tests() -> None:
    examples = load("functions").examples
    assert len(examples) == 30
    assert all(example.problem.tests and example.problem.entry_point for example in examples)
    assert all(len(set(example.hidden_tests) - set(example.problem.tests)) >= 4 for example in examples)


@pytest.mark.sandbox
async def test_reference_solutions_of_functions_pass_and_empty_ones_fail() -> None:
    examples = load("functions").examples
    right = await asyncio.gather(*(agrade(example, example.answer) for example in examples))
    assert [grade.feedback for grade in right if not grade.correct] == []
    stubs = (f"def {example.problem.entry_point}(*arguments):\n    return None" for example in examples)
    wrong = await asyncio.gather(*(agrade(example, stub) for example, stub in zip(examples, stubs, strict=True)))
    assert not any(grade.correct for grade in wrong)
