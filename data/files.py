"""Rows out of local files: JSONL, CSV, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coda.errors import DataError

ENDINGS = (".jsonl", ".csv", ".parquet")

Row = dict[str, Any]
Placed = Iterator[tuple[str, Row]]
"""Rows, each with the words that say where it stands."""


def read_file(file: Path) -> Placed:
    """Read a file's rows; its ending says how.

    Raises:
        DataError: It is missing, of no known kind, or malformed.
    """
    if not file.is_file():
        raise DataError(f"There is no file {file}. Give the path of a JSONL, CSV or Parquet file.")
    if file.suffix not in ENDINGS:
        raise DataError(f"{file}: files of this kind are not read. Use one that ends in {', '.join(ENDINGS)}.")
    return {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}[file.suffix](file)


def _jsonl(file: Path) -> Placed:
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield f"{file}, line {number}", _row(line, f"{file}, line {number}")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}. It must be a text file in UTF-8.") from error


def _row(line: str, where: str) -> Row:
    try:
        row = json.loads(line.rstrip())
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        at = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{where}{at}: this is not JSON ({reason}). Every line must hold one JSON object.") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: this is {type(row).__name__}, not an object. Every line must hold one JSON object.")
    return row


def _csv(file: Path) -> Placed:
    """CSV with a header; every cell is a text, an empty one is nothing, a list is written as JSON."""
    csv.field_size_limit(1 << 30)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            for row in reader:
                cells = {name: _cell(value) for name, value in row.items() if name is not None and value}
                yield f"{file}, line {reader.line_num}", cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read: {error}. It must be CSV in UTF-8 with a header.") from error


def _cell(value: str) -> Any:
    if value.startswith("[") and value.endswith("]"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _parquet(file: Path) -> Placed:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file} cannot be read: {error}. It must be a Parquet file.") from error
    for number, row in enumerate(table.to_pylist(), start=1):
        yield f"{file}, row {number}", row
