"""Training sets from recorded runs, as JSONL that ``datasets`` loads: a folder for each set, a file for each split."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, get_args

from coda.data.splits import split_of
from coda.errors import RunError, UsageError
from coda.experiments.report.runs import Run, find_runs
from coda.experiments.training_rows import Kind, rows_of, task_of
from coda.optimize.identity import fingerprint
from coda.optimize.records import read_results


def harvest(places: Sequence[Path], out: Path, *, validation: float = 0.1, allow_test: bool = False) -> dict[str, int]:
    """Write training sets from runs. A problem is in one split only, fixed by its text.

    Args:
        places: Run directories, or folders with run directories in them.
        out: The folder; it must not hold training sets yet.
        validation: The share of problems that are kept for validation, from 0 to 1.
        allow_test: Also take runs on a test split. What is trained on them must not be measured on it.

    Returns:
        The number of rows by ``SET/SPLIT``.

    Raises:
        UsageError: A run is on a test split, or ``out`` holds training sets already.
        RunError: Runs cannot be read, or the folder cannot be written.
    """
    runs, _ = find_runs(places)
    for run in runs:
        if run.summary.split in {"test", "all"} and not allow_test:
            raise UsageError(
                f"{run.path} is on the split {run.summary.split!r} of {run.summary.benchmark}, which must not be "
                "trained on. Measure with `coda eval --split train`, or give --allow-test."
            )
    if any((out / kind).exists() for kind in get_args(Kind)):
        raise UsageError(f"{out} holds training sets already. Remove them, or name another folder.")
    try:
        with ExitStack() as stack:
            return dict(_Writer(out, validation, stack).write(runs))
    except OSError as error:
        raise RunError(f"{out}: {error.strerror}. Name a folder that can be written.") from error


class _Writer:
    def __init__(self, out: Path, validation: float, stack: ExitStack) -> None:
        self._out = out
        self._shares = {"train": 1 - validation, "validation": validation}
        self._stack = stack
        self._files: dict[str, IO[str]] = {}
        self._seen: set[str] = set()
        self._counts: Counter[str] = Counter()

    def write(self, runs: Sequence[Run]) -> Counter[str]:
        for run in runs:
            origin = {
                "run": run.name,
                "benchmark": run.summary.benchmark,
                "split": run.summary.split,
                "digest": run.summary.digest,
                "model": run.summary.model,
                "program": run.summary.program,
                "git": run.notes.get("git") or "",
            }
            for record in read_results(run.path):
                split = split_of(task_of(record), self._shares)  # type: ignore[arg-type]
                for kind, row, attempts in rows_of(record):
                    numbers = {"attempt": -1, "against": -1, **attempts}
                    source = {**origin, "id": record.id, "sample": record.sample, **numbers}
                    self._add(f"{kind}/{split}", row, source)
        return self._counts

    def _add(self, name: str, row: dict[str, object], source: dict[str, object]) -> None:
        digest = fingerprint([name, row])
        if digest in self._seen:
            return
        self._seen.add(digest)
        if name not in self._files:
            file = self._out / f"{name}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            self._files[name] = self._stack.enter_context(file.open("w", encoding="utf-8"))
        self._files[name].write(json.dumps({**row, "provenance": source}) + "\n")
        self._counts[name] += 1
