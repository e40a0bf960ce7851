"""Splits by content, and problems that are almost the same across them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coda.data.examples import Example
from coda.data.splits import near_duplicates, split_of

Make = Callable[..., Example]
STORY = (
    "A farmer takes {n} crates of apples to the market in the morning, sells most of them before noon, gives some to a "
    "friend, and brings the others home in the evening. How many crates does she bring home if she sold seven?"
)


def test_shares_are_kept_on_average() -> None:
    found = [split_of(f"problem {n}", {"train": 0.8, "test": 0.2}) for n in range(2000)]
    assert found.count("train") == pytest.approx(1600, abs=80)
    assert set(found) == {"train", "test"}


def test_near_duplicates_across_splits_are_found(example: Make) -> None:
    examples = [
        example(id="a", split="train", text=STORY.format(n=12)),
        example(id="b", split="test", text=STORY.format(n=15)),
        example(id="c", split="test", text="How many legs do four spiders have?"),
        example(id="d", split="train", text="How many wheels do six bicycles have?"),
    ]
    ((one, other, similarity),) = near_duplicates(examples)
    assert {one.id, other.id} == {"a", "b"}
    assert 0.8 < similarity < 1.0


def test_near_duplicates_within_a_split_do_no_harm(example: Make) -> None:
    examples = [example(id=name, split="train", text=STORY.format(n=name)) for name in ("one", "two")]
    assert near_duplicates(examples) == []


def test_the_options_count_too(example: Make) -> None:
    """Many benchmarks ask "Which of these is true?" more than once."""
    examples = [
        example(id=split, split=split, text="Which is true?", choices=options, task="choice")
        for split, options in {
            "train": ("all cats are grey", "no cat is"),
            "test": ("iron floats", "wood sinks"),
        }.items()
    ]
    assert near_duplicates(examples) == []


def test_every_pair_of_a_large_family_is_reported_once(example: Make) -> None:
    examples = [
        example(id=f"{split}{n}", split=split, text=STORY.format(n=n)) for n in range(5) for split in ("train", "test")
    ]
    pairs = [frozenset((one.id, other.id)) for one, other, _ in near_duplicates(examples)]
    assert len(pairs) == len(set(pairs)) == 25
