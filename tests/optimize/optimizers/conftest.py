"""A compilation on a benchmark of sums."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_engine import LocalEngine
from summing import Compiling, adder


@pytest.fixture
def compiling(tmp_path: Path) -> Iterator[Compiling]:
    with LocalEngine(adder, models=("test-model", "other-model")) as engine:
        yield Compiling(tmp_path, engine)
