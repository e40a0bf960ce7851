"""Benchmarks by name: those that ship with the project, and users' own files."""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence
from pathlib import Path

from coda.data.bundled import BUNDLED, LICENCE, sample_file
from coda.data.examples import SPLITS, Benchmark, Example, Split, digest_of
from coda.data.files import read_file
from coda.data.rows import read_rows
from coda.data.splits import sizes
from coda.errors import DataError

__all__ = ["Benchmark", "Example", "Split", "load", "names"]


def load(
    name: str,
    *,
    split: str | None = None,
    data_file: Path | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> Benchmark:
    """Load a benchmark.

    Args:
        name: Its name, or the path of a file of your own (see docs/benchmarks.md).
        split: ``train``, ``validation`` or ``test``; by default the whole.
        data_file: A local file in the benchmark's own schema, to be read in its place.
        limit: At most so many examples, drawn with ``seed``; they keep their order.
        seed: Seed for that.

    Raises:
        DataError: There is no such benchmark or split, its data cannot be read, or nothing is left.
    """
    if split is not None and split not in SPLITS:
        raise DataError(f"There is no split {split!r}. Splits are: {', '.join(SPLITS)}.")
    whole = _whole(name, data_file)
    examples = tuple(each for each in whole.examples if split is None or each.split == split)
    if not examples:
        there = ", ".join(f"{part} {n}" for part, n in sizes(whole.examples).items())
        raise DataError(f"Benchmark {whole.name} has no problems in its {split} split. Its sizes are: {there}.")
    if limit is not None:
        examples = _drawn(examples, limit, seed)
    return whole.model_copy(update={"examples": examples, "split": split or "all", "digest": digest_of(examples)})


def names() -> tuple[str, ...]:
    """The names of all benchmarks."""
    return tuple(BUNDLED)


def _whole(name: str, data_file: Path | None) -> Benchmark:
    path = Path(name)
    if name in BUNDLED:
        file = data_file or sample_file(name)
        benchmark, licence = name, LICENCE if data_file is None else ""
    elif path.suffix in {".jsonl", ".csv", ".parquet"} or path.is_file():
        file, benchmark, licence = path, path.stem, ""
    else:
        raise _unknown(name)
    examples = read_rows(read_file(file), benchmark)
    return Benchmark(
        name=benchmark,
        examples=examples,
        split="all",
        digest="",
        licence=licence,
        source=_source(file, data_file, name),
    )


def _source(file: Path, data_file: Path | None, name: str) -> str:
    return "bundled" if name in BUNDLED and data_file is None else str(file)


def _drawn(examples: Sequence[Example], limit: int, seed: int) -> tuple[Example, ...]:
    if limit < 1:
        raise DataError(f"A limit of {limit} leaves no problems. Give at least 1.")
    if limit >= len(examples):
        return tuple(examples)
    return tuple(examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), limit)))


def _unknown(name: str) -> DataError:
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return DataError(
        f"There is no benchmark {name!r}. {hint}"
        f"Known are: {', '.join(names())}; or give the path of a JSONL, CSV or Parquet file."
    )
