"""The runs that a report is about: found in folders, ordered by when they began, and given short names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coda.errors import RunError
from coda.optimize.rundir import read_config
from coda.optimize.summary import Summary, read_summary

NOT_RUNS = frozenset({"cache", "mlartifacts", "prompts"})
"""Folders beside runs that hold none and may be large."""


@dataclass(frozen=True)
class Run:
    """A run directory, as far as it is not about single problems.

    Attributes:
        name: What the report calls it.
        path: Where it is.
        identity: What it measured: benchmark, evaluation, program (docs/records.md).
        notes: When it began, the versions, where the Engine was.
        summary: Its figures.
    """

    name: str
    path: Path
    identity: dict[str, Any]
    notes: dict[str, Any]
    summary: Summary

    @property
    def data(self) -> tuple[str, str]:
        """The benchmark and split: what runs must share to be compared."""
        return self.summary.benchmark, self.summary.split


def find_runs(places: Iterable[Path]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """The runs in some places, each a run directory or a folder with run directories somewhere below it.

    Runs stand in the order of the places; those of one folder in the order in which they began.

    Returns:
        The runs, and a remark on each that was passed over for having no summary or no results yet.

    Raises:
        RunError: A place holds no run, or a run cannot be read.
    """
    found: dict[Path, Path] = {}
    remarks: list[str] = []
    for place in places:
        below = _run_directories(place)
        whole = [path for path in below if _is_whole(path)]
        if not whole:
            raise RunError(
                f"{place} holds no finished run. Give run directories that `coda eval --run-dir` wrote, or a folder "
                "with such directories in it; a run that was interrupted is finished by the same command."
            )
        remarks += [f"{path} is left out: it is not finished." for path in below if path not in whole]
        ordered = sorted(whole, key=lambda path: (str(read_config(path)["notes"].get("started")), str(path)))
        for path in ordered:
            found.setdefault(path.resolve(), path)
    names = _names(list(found))
    return tuple(_read(path, name) for path, name in zip(found.values(), names, strict=True)), tuple(remarks)


def _run_directories(place: Path) -> list[Path]:
    """The place itself, or what is below it."""
    if (place / "config.json").exists():
        return [place]
    found = []
    for folder, below, files in os.walk(place):
        below[:] = sorted(name for name in below if name not in NOT_RUNS and not name.startswith("."))
        if "config.json" in files and "results.jsonl" in files:
            found.append(Path(folder))
            below.clear()
    return found


def _is_whole(path: Path) -> bool:
    return (path / "summary.json").exists() and (path / "results.jsonl").exists()


def _read(path: Path, name: str) -> Run:
    config = read_config(path)
    try:
        summary = read_summary(path)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunError(
            f"{path / 'summary.json'}: {where}: {first['msg']}. Read it with the version of CODA that wrote it."
        ) from error
    if summary.n == 0:
        raise RunError(f"{path} has no results. Run the same command again, or leave it out.")
    return Run(name=name, path=path, identity=config["identity"], notes=config.get("notes") or {}, summary=summary)


def _names(paths: Sequence[Path]) -> list[str]:
    """As many last parts of each path as tell them apart."""
    for depth in range(1, max((len(path.parts) for path in paths), default=1)):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]
