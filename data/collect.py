"""Gathering a benchmark from the hub, or from a local file in its schema."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coda.data import hub
from coda.data.catalog import CATALOG, Declaration, Shares
from coda.data.examples import SPLITS, Benchmark, Example
from coda.data.files import read_file
from coda.data.livecodebench import Edition
from coda.data.rows import read_rows
from coda.data.schemas import Draft, Row
from coda.data.splits import split_of
from coda.errors import DataError
from coda.program.answers.choices import LETTERS

_ALIASES = {
    "problem": ("problem", "question", "prompt"),
    "choices": ("choices", "options"),
    "answer": ("answer", "target"),
}


@dataclass(frozen=True)
class _Portion:
    """Rows that are dealt out in the same way."""

    label: str
    rows: Iterable[tuple[str, Row]]
    shares: Shares


def from_catalog(name: str, parts: list[str], *, split: str | None, data_file: Path | None, seed: int) -> Benchmark:
    """Gather a declared benchmark, at least the split that is wanted.

    Args:
        name: Its name in the catalogue.
        parts: What stands after the name: version and window of LiveCodeBench.
        split: The split that is wanted; ``None`` for all.
        data_file: A local file in its schema, in place of the hub.
        seed: Seed for the order of options, where it is open.

    Raises:
        DataError: The rows cannot be had or used.
    """
    declaration = CATALOG[name]
    edition = _edition(name, parts)
    source = declaration.source
    if edition is not None:
        source = hub.Source(source.repository, edition.version, source.revision)
    if data_file is not None:
        portions = [_Portion("", read_file(data_file), declaration.shares)]
    else:
        portions = [
            _Portion(part, hub.rows(source, part), shares)
            for part, shares in declaration.parts.items()
            if split is None or split in shares
        ]
    examples = tuple(_examples(name, declaration, portions, seed, edition))
    _check_ids(name, examples)
    return Benchmark(
        name=":".join([name, *parts]),
        examples=examples,
        split="all",
        digest="",
        licence=declaration.licence,
        source=str(data_file or source),
    )


def from_hub(name: str, parts: list[str], *, split: str | None) -> Benchmark:
    """Gather any data set of the hub whose columns are those of the project's own rows, or usual names for them.

    Args:
        name: ``hf:OWNER/NAME``, ``hf:OWNER/NAME@REVISION``, or one of them with ``:CONFIG`` behind it.
        parts: The name's parts behind ``hf``.
        split: The split that is wanted; ``None`` for all.

    Raises:
        DataError: The rows cannot be had or used.
    """
    repository, _, revision = parts[0].partition("@")
    source = hub.Source(repository, parts[1] if len(parts) > 1 else None, revision or None)
    there = hub.splits(source)
    known = [part for part in there if part in SPLITS]
    own = len(known) > 1  # its splits are kept; a single one is dealt out by content
    read = [part for part in known if split in (None, part)] if own else there
    placed = ((where, _renamed(row, part if own else None)) for part in read for where, row in hub.rows(source, part))
    return Benchmark(name=name, examples=read_rows(placed, repository), split="all", digest="", source=str(source))


def _examples(
    name: str, declaration: Declaration, portions: list[_Portion], seed: int, edition: Edition | None
) -> Iterator[Example]:
    for portion in portions:
        label = "-".join(part for part in (name, portion.label) if part)
        for number, (where, row) in enumerate(portion.rows, start=1):
            if number == 1:
                _check_columns(where, row, declaration)
            with _Reading(where):
                if edition is not None and not edition.holds(row):
                    continue
                draft = declaration.read(row, random.Random(f"{seed}:{label}:{number}"))
                yield _finished(draft, name, f"{label}-{number:05d}", portion.shares)


def _finished(draft: Draft, name: str, default_id: str, shares: Shares) -> Example:
    fields = {key: value for key, value in vars(draft).items() if key not in {"id", "program"}}
    split = split_of(draft.problem.text, shares)
    return Example(
        **fields,
        id=f"{name}-{draft.id}" if draft.id.isdigit() else draft.id or default_id,
        program=draft.program if split == "train" else None,
        split=split,
    )


class _Reading:
    """Turns the ways in which a row can surprise its reader into one message."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, IndexError, AttributeError, ValidationError)):
            raise DataError(
                f"{self._where}: this row cannot be read ({type(error).__name__}: {error}). "
                "Has the data set changed? Compare its columns with docs/benchmarks.md."
            ) from error


def _check_columns(where: str, row: Row, declaration: Declaration) -> None:
    missing = [column for column in declaration.columns if column not in row]
    if missing:
        raise DataError(
            f"{where}: there is no column {', '.join(map(repr, missing))}; there are {', '.join(map(repr, row))}. "
            f"This benchmark's rows have: {', '.join(declaration.columns)}. Has the data set changed?"
        )


def _check_ids(name: str, examples: tuple[Example, ...]) -> None:
    seen: set[str] = set()
    for example in examples:
        if example.id in seen:
            raise DataError(f"Benchmark {name}: the id {example.id!r} occurs twice. Give every row an id of its own.")
        seen.add(example.id)


def _edition(name: str, parts: list[str]) -> Edition | None:
    if name == "livecodebench":
        return Edition.parse(parts)
    if parts:
        raise DataError(f"Benchmark {name} has no versions: {':'.join(parts)!r} means nothing. Give its name alone.")
    return None


def _renamed(row: Mapping[str, Any], split: str | None) -> dict[str, Any]:
    """A hub row under the project's own names; an index in the answer's place becomes the option's letter."""
    renamed = dict(row) if split is None else {**row, "split": split}
    for name, others in _ALIASES.items():
        found = next((other for other in others if row.get(other) is not None), None)
        if found is not None:
            renamed[name] = row[found]
    answer = renamed.get("answer")
    if renamed.get("choices") and isinstance(answer, int) and 0 <= answer < len(LETTERS):
        renamed["answer"] = LETTERS[answer]
    return renamed
