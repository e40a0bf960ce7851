"""Looking through a benchmark's data."""

from __future__ import annotations

from collections.abc import Callable

from coda.data.examples import Benchmark, Example
from coda.data.survey import examine

Make = Callable[..., Example]
STORY = (
    "A long story about {} crates of apples which are carried to the market in the morning, sold there by noon, eaten "
    "at home in the afternoon by many hungry children, and remembered by all of them in the evening before they sleep."
)


def test_what_is_wrong_with_the_data_is_reported(example: Make) -> None:
    found = examine(
        Benchmark(
            name="mine",
            split="all",
            digest="d",
            examples=(
                example(id="a", text=STORY.format("12"), split="train"),
                example(id="b", text=STORY.format("13"), split="test"),
                example(id="c", text="Twice?", split="test"),
                example(id="d", text="Twice?", split="test"),
                example(id="e", text="Else?", answer="well, that depends on it", split="test"),
            ),
        )
    )
    assert not found.sound
    assert found.sizes == {"train": 1, "validation": 0, "test": 4}
    assert [(pair.first, pair.second) for pair in found.near_duplicates] == [("a", "b")]
    assert found.repeated == (("c", "d"),)
    assert list(found.ungradable) == ["e"]


def test_data_without_faults_is_sound(example: Make) -> None:
    found = examine(Benchmark(name="mine", examples=(example(),), split="all", digest="d"))
    assert found.sound
