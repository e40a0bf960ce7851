"""The benchmark ``words``: word problems of one and two steps, made by a seeded generator.

    python -m coda.data.words > data/samples/words.jsonl     # the same bytes every time

Every row holds a problem, its answer, and its split; rows of the train split also hold a reference program, from which
labelled demos are made. No two rows share an operation with its numbers, so that no split can be answered from another.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 2026
SIZES = {"train": 160, "validation": 64, "test": 96}

PEOPLE = (
    "Ana", "Ben", "Chidi", "Dara", "Elif", "Femi", "Grete", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Milo", "Noor",
    "Olga", "Pavel", "Quinn", "Rosa", "Sami", "Tomas", "Uma", "Viktor", "Wanda", "Yara", "Zeno",
)  # fmt: skip
THINGS = (
    ("apples", "baskets"), ("books", "shelves"), ("buttons", "jars"), ("candles", "boxes"), ("cards", "packs"),
    ("eggs", "cartons"), ("flowers", "vases"), ("lemons", "crates"), ("marbles", "bags"), ("muffins", "trays"),
    ("pencils", "cases"), ("photos", "albums"), ("plates", "stacks"), ("shells", "buckets"), ("stamps", "folders"),
    ("tickets", "rolls"), ("tiles", "boxes"), ("tomatoes", "crates"),
)  # fmt: skip


@dataclass(frozen=True)
class Numbers:
    """The numbers of one problem."""

    a: int
    b: int
    c: int


@dataclass(frozen=True)
class Kind:
    """Problems that one expression answers.

    Attributes:
        expression: How the answer is computed.
        wordings: Ways to tell the story.
        sensible: Which numbers make a story that can happen.
    """

    expression: str
    wordings: tuple[str, ...]
    sensible: Callable[[Numbers], bool] = lambda numbers: True


def _few_groups(numbers: Numbers) -> bool:
    return numbers.a <= 12


def _enough_in_groups(numbers: Numbers) -> bool:
    return numbers.a <= 12 and numbers.a * numbers.b > numbers.c


ONE_STEP = (
    Kind(
        "{a} + {b}",
        (
            "{who} has {a} {things} and gets {b} more. How many {things} does {who} have now?",
            "There are {a} {things} on the table. {who} brings {b} more. How many {things} are on the table then?",
            "{who} found {a} {things} on Monday and {b} {things} on Tuesday. How many {things} is that together?",
            "{who} has {a} {things}. {other} has {b} more {things} than {who}. How many {things} does {other} have?",
            "A shop sold {a} {things} in the morning and {b} in the afternoon. How many {things} did it sell that day?",
        ),
    ),
    Kind(
        "{a} - {b}",
        (
            "{who} had {a} {things} and gave {b} of them to {other}. How many {things} does {who} have left?",
            "Of {a} {things}, {b} are already packed. How many {things} are not packed yet?",
            "{who} has {a} {things}. {other} has {b} fewer. How many {things} does {other} have?",
            "{who} wants {a} {things} and has {b} so far. How many {things} are still missing?",
            "A shop had {a} {things} and sold {b} of them. How many {things} remain in the shop?",
        ),
        lambda numbers: numbers.a > numbers.b,
    ),
    Kind(
        "{a} * {b}",
        (
            "There are {a} {holders} with {b} {things} in each. How many {things} are there?",
            "{who} buys {a} {holders} of {things}. Each one holds {b} {things}. How many {things} does {who} buy?",
            "{who} collects {b} {things} every day. How many {things} does {who} collect in {a} days?",
            "Each of {a} children brings {b} {things}. How many {things} do they bring together?",
            "{things_} cost {b} coins each. How many coins does {who} pay for {a} of them?",
        ),
        _few_groups,
    ),
)
TWO_STEPS = (
    Kind(
        "{a} * {b} + {c}",
        (
            "{who} has {a} {holders} with {b} {things} in each, and {c} loose {things}. "
            "How many {things} does {who} have?",
            "There are {a} {holders} of {b} {things}. {other} adds {c} more. How many {things} are there now?",
            "{who} picks {b} {things} a day for {a} days and already had {c}. How many {things} does {who} have now?",
        ),
        _few_groups,
    ),
    Kind(
        "{a} * {b} - {c}",
        (
            "{who} fills {a} {holders} with {b} {things} each. Then {c} {things} get lost. How many {things} are left?",
            "There are {a} {holders} of {b} {things}. {who} takes {c} {things} away. How many {things} remain?",
            "Each of {a} friends brings {b} {things}, and {c} of them are used. How many {things} are not used?",
        ),
        _enough_in_groups,
    ),
    Kind(
        "{a} + {b} - {c}",
        (
            "{who} has {a} {things}, buys {b} more and gives {c} away. How many {things} does {who} have now?",
            "{a} {things} were in the shop. {b} came in and {c} were sold. How many {things} are in the shop?",
            "{who} has {a} {things} and {other} has {b}. Together they use {c}. How many {things} are left over?",
        ),
        lambda numbers: numbers.a + numbers.b > numbers.c,
    ),
    Kind(
        "{a} + {b} + {c}",
        (
            "{who} has {a} {things}, {other} has {b} and {third} has {c}. How many {things} do they have together?",
            "A shop sold {a} {things} on Friday, {b} on Saturday and {c} on Sunday. How many did it sell in all?",
        ),
    ),
    Kind(
        "{a} - {b} - {c}",
        (
            "{who} had {a} {things}, gave {b} to {other} and {c} to {third}. How many {things} does {who} still have?",
            "There were {a} {things}. In the first hour {b} were sold, in the second {c}. How many {things} are left?",
        ),
        lambda numbers: numbers.a > numbers.b + numbers.c,
    ),
    Kind(
        "({a} + {b}) * {c}",
        (
            "Each of {c} {holders} holds {a} red and {b} blue {things}. How many {things} are there in all?",
            "Every day {who} sells {a} {things} and {other} sells {b}. How many {things} do they sell in {c} days?",
        ),
        lambda numbers: numbers.c <= 12,
    ),
)


def rows(seed: int = SEED) -> Iterator[dict[str, str]]:
    """Make the rows, split by split; half of them take one step, half two."""
    rng = random.Random(seed)
    used: set[tuple[str, tuple[int, ...]]] = set()
    for split, size in SIZES.items():
        for number in range(size):
            kinds = (ONE_STEP, TWO_STEPS)[number % 2]
            kind = kinds[number // 2 % len(kinds)]
            wording = kind.wordings[number // (2 * len(kinds)) % len(kind.wordings)]
            yield _row(rng, kind, wording, f"words-{split}-{number:03d}", used)


def _row(
    rng: random.Random, kind: Kind, wording: str, identity: str, used: set[tuple[str, tuple[int, ...]]]
) -> dict[str, str]:
    numbers = _numbers(rng, kind, used)
    expression = kind.expression.format(**vars(numbers))
    who, other, third = rng.sample(PEOPLE, 3)
    things, holders = rng.choice(THINGS)
    names = {"who": who, "other": other, "third": third, "things": things, "holders": holders}
    split = identity.split("-")[1]
    row = {
        "id": identity,
        "problem": wording.format(**names, things_=things.capitalize(), **vars(numbers)),
        "answer": str(_value(kind.expression, numbers)),
        "split": split,
    }
    return {**row, "program": f"print({expression})"} if split == "train" else row


def _numbers(rng: random.Random, kind: Kind, used: set[tuple[str, tuple[int, ...]]]) -> Numbers:
    """Numbers that make sense and that no earlier problem of this kind has, in whatever order."""
    while True:
        numbers = Numbers(*rng.sample(range(2, 26), 3))
        there = [value for name, value in vars(numbers).items() if f"{{{name}}}" in kind.expression]
        key = (kind.expression, tuple(sorted(there)))
        if kind.sensible(numbers) and key not in used:
            used.add(key)
            return numbers


def _value(expression: str, numbers: Numbers) -> int:
    """The expression's value, computed without running text as code."""
    a, b, c = numbers.a, numbers.b, numbers.c
    return {
        "{a} + {b}": a + b,
        "{a} - {b}": a - b,
        "{a} * {b}": a * b,
        "{a} * {b} + {c}": a * b + c,
        "{a} * {b} - {c}": a * b - c,
        "{a} + {b} - {c}": a + b - c,
        "{a} + {b} + {c}": a + b + c,
        "{a} - {b} - {c}": a - b - c,
        "({a} + {b}) * {c}": (a + b) * c,
    }[expression]


def text(seed: int = SEED) -> str:
    """The whole file."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(seed))


if __name__ == "__main__":
    sys.stdout.write(text())
