"""The benchmarks that ship with the project, all written for it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

LICENCE = "Apache-2.0, written for this project"

BUNDLED = {
    "words": "word problems of one and two steps, with whole-number answers",
    "science": "multiple-choice questions on physics, chemistry, biology, the earth and the sky",
    "functions": "small Python functions with visible and hidden tests",
}


def sample_file(name: str) -> Path:
    """The file of a bundled benchmark."""
    return Path(str(files("coda.data") / "samples" / f"{name}.jsonl"))
