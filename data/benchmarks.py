"""Benchmarks by name: those that ship with the project, those on the hub, and users' own files."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from coda.data.bundled import BUNDLED, LICENCE, sample_file
from coda.data.catalog import CATALOG
from coda.data.collect import from_catalog, from_hub
from coda.data.examples import SPLITS, Benchmark, Example, Split, digest_of
from coda.data.files import ENDINGS, read_file
from coda.data.rows import read_rows
from coda.data.splits import near_duplicates, sizes
from coda.errors import DataError

__all__ = ["ALL", "Benchmark", "Example", "Split", "load", "names"]

ALL = "all"
"""In place of a split's name: the whole benchmark."""

MOST_COMPARED = 5000
"""Problems among which near-duplicates are looked for at each loading, which takes half a second; ``coda data check``
looks among any number."""


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
        name: Its name (`names`), ``hf:OWNER/NAME``, or the path of a file of your own (see docs/benchmarks.md).
        split: ``train``, ``validation`` or ``test``; ``None`` or ``all`` for the whole.
        data_file: A local file in the benchmark's own schema, to be read in its place.
        limit: At most so many examples, drawn with ``seed``; they keep their order.
        seed: Seed for that, and for the order of options where the benchmark leaves it open.

    Raises:
        DataError: There is no such benchmark or split, its data cannot be read, or nothing is left.
    """
    wanted = None if split in (None, ALL) else split
    if wanted is not None and wanted not in SPLITS:
        raise DataError(f"There is no split {split!r}. Splits are: {', '.join((*SPLITS, ALL))}.")
    whole = _gathered(name, wanted, data_file, seed)
    examples = tuple(each for each in whole.examples if wanted is None or each.split == wanted)
    if not examples:
        there = ", ".join(f"{part} {n}" for part, n in sizes(whole.examples).items() if n)
        raise DataError(
            f"Benchmark {whole.name} has no problems in its {wanted} split{f'; it has: {there}' if there else ''}. "
            "Take another split, or another benchmark to learn from."
        )
    if limit is not None:
        examples = _drawn(examples, limit, seed)
    notes = whole.notes if wanted is None else (*whole.notes, *_caution(name, whole))
    changes = {"examples": examples, "split": wanted or ALL, "digest": digest_of(examples), "notes": notes}
    return whole.model_copy(update=changes)


def names() -> tuple[str, ...]:
    """The names of all benchmarks."""
    return (*BUNDLED, *CATALOG)


def _gathered(name: str, split: str | None, data_file: Path | None, seed: int) -> Benchmark:
    """The benchmark's examples, at least all of the split."""
    base, *parts = name.split(":")
    if base in CATALOG:
        return from_catalog(base, parts, split=split, data_file=data_file, seed=seed)
    if base == "hf" and parts:
        return from_hub(name, parts, split=split)
    if name in BUNDLED:
        return _from_file(name, data_file or sample_file(name), bundled=data_file is None)
    path = Path(name)
    if path.suffix in ENDINGS or path.is_file():
        return _from_file(path.stem, path)
    raise _unknown(name)


def _caution(name: str, whole: Benchmark) -> Iterator[str]:
    """What to say about problems in different splits that are almost the same."""
    if len(whole.examples) > MOST_COMPARED:
        return
    pairs = near_duplicates(whole.examples)
    if pairs:
        one, other, similarity = pairs[0]
        yield (
            f"{whole.name}: {len(pairs)} pair(s) of problems in different splits are nearly the same, such as "
            f"{one.id} ({one.split}) and {other.id} ({other.split}), {similarity:.0%} alike: what is learned from one "
            f"helps with the other. See them all with: coda data check {name}"
        )


def _from_file(name: str, file: Path, *, bundled: bool = False) -> Benchmark:
    """A file in the project's own row schema."""
    return Benchmark(
        name=name,
        examples=read_rows(read_file(file), name),
        split=ALL,
        digest="",
        licence=LICENCE if bundled else "",
        source="bundled" if bundled else str(file),
    )


def _drawn(examples: Sequence[Example], limit: int, seed: int) -> tuple[Example, ...]:
    if limit < 1:
        raise DataError(f"A limit of {limit} leaves no problems. Give at least 1.")
    if limit >= len(examples):
        return tuple(examples)
    return tuple(examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), limit)))


def _unknown(name: str) -> DataError:
    near = difflib.get_close_matches(name.split(":")[0], names(), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    return DataError(
        f"There is no benchmark {name!r}. {hint}Known are: {', '.join(names())}; "
        f"or give hf:OWNER/NAME, or the path of a file that ends in {', '.join(ENDINGS)}."
    )
