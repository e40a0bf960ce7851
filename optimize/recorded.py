"""Recorded answers: a model's replies to problems, kept in a file to be graded and verified again.

A row is ``{"problem": …, "answer": …, "samples": [{"text": …, "correct": …}]}`` with the fields of a user's own
problems (docs/benchmarks.md), or ``{"id": …, "samples": […]}`` beside a benchmark that has the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from coda.data.benchmarks import Example, load
from coda.data.files import read_file
from coda.data.rows import read_row
from coda.errors import DataError
from coda.program.types import Frozen


class Sample(Frozen):
    """One reply.

    Attributes:
        text: The whole of it; the answer is extracted from it.
        correct: Whether somebody else found it right; ``None`` where nobody says.
    """

    text: str
    correct: bool | None = None


class Recorded(Frozen):
    """A problem with its replies."""

    example: Example
    samples: tuple[Sample, ...]


def read_recorded(file: Path, *, benchmark: str | None = None, data_file: Path | None = None) -> tuple[Recorded, ...]:
    """Read recorded answers.

    Args:
        file: The JSONL file.
        benchmark: The benchmark that has the problems of rows with an id alone.
        data_file: A local file in the benchmark's schema.

    Raises:
        DataError: A row is malformed, its id is unknown or occurs twice, or there are none.
    """
    known = {} if benchmark is None else {each.id: each for each in load(benchmark, data_file=data_file).examples}
    found: dict[str, Recorded] = {}
    for number, (where, row) in enumerate(read_file(file), start=1):
        example = _example(row, where, f"{file.stem}-{number:04d}", known, benchmark)
        if example.id in found:
            raise DataError(f"{where}: id {example.id!r} stands there already. Give every row an id of its own.")
        found[example.id] = Recorded(example=example, samples=tuple(_samples(row, where)))
    if not found:
        raise DataError(f"{file} has no rows. Give it at least one problem with its samples.")
    return tuple(found.values())


def _example(
    row: Mapping[str, Any], where: str, default_id: str, known: Mapping[str, Example], benchmark: str | None
) -> Example:
    if row.get("problem") is not None:
        return read_row(row, where, default_id=default_id)
    identity = row.get("id")
    if identity is None:
        raise DataError(f"{where}: the row has neither a problem nor an id. Give it one of them.")
    if benchmark is None:
        raise DataError(f"{where}: the row has an id and no problem. Say which benchmark it belongs to.")
    if str(identity) not in known:
        some = ", ".join(list(known)[:3])
        raise DataError(f"{where}: benchmark {benchmark} has no problem {str(identity)!r}. Its ids are like {some}.")
    return known[str(identity)]


def _samples(row: Mapping[str, Any], where: str) -> Iterable[Sample]:
    samples = row.get("samples")
    if not isinstance(samples, list) or not samples:
        raise DataError(f'{where}, field samples: it must be a list of at least one {{"text": …}}.')
    for number, sample in enumerate(samples, start=1):
        text, correct = (sample, None) if isinstance(sample, str) else _parts(sample)
        if not isinstance(text, str) or not (correct is None or isinstance(correct, bool)):
            raise DataError(f'{where}, sample {number}: it must be {{"text": a text, "correct": true or false}}.')
        yield Sample(text=text, correct=correct)


def _parts(sample: Any) -> tuple[Any, Any]:
    return (sample.get("text"), sample.get("correct")) if isinstance(sample, Mapping) else (None, None)
