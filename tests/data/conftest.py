"""Shared by the tests of the data layer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coda.data.examples import Example
from coda.program.types import Problem

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real benchmark data, where this machine has it."""
    folder = Path(os.environ.get("CODA_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real benchmark data at {folder}; CODA_SHARED_DATA can name another folder")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows into a JSONL file; a row that is a text is written as it is."""

    def write(*rows: dict[str, Any] | str, name: str = "mine.jsonl") -> Path:
        file = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return file

    return write


@pytest.fixture
def example() -> Callable[..., Example]:
    """Make an example out of its problem's and its own fields."""

    def make(answer: str = "42", text: str = "What is it?", **fields: Any) -> Example:
        own = {name: fields.pop(name) for name in list(fields) if name in Example.model_fields}
        return Example(**{"id": "e1", "answer": answer, **own}, problem=Problem(text=text, **fields))

    return make
