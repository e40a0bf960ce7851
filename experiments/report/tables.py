"""The report's tables: as rows for the page and Markdown, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from coda.experiments.figures import metrics_of, rows_of
from coda.experiments.report.contents import Effect, tokens_each
from coda.experiments.report.runs import Run
from coda.optimize.records import read_results

RESULTS = ("run", "n", "accuracy", "95 % interval", "calls", "tokens", "tokens each", "seconds", "data")
EFFECTS = ("run", "points", "95 % interval", "gained", "lost", "p", "n", "against")


def results(runs: Iterable[Run]) -> list[tuple[str, ...]]:
    """The headline table; columns are `RESULTS`."""
    return [
        (
            run.name,
            f"{run.summary.n:,}",
            f"{run.summary.accuracy:.1%}",
            f"{run.summary.ci95[0]:.1%} to {run.summary.ci95[1]:.1%}",
            f"{run.summary.calls:,}",
            f"{run.summary.tokens:,}",
            f"{tokens_each(run):,.0f}",
            f"{run.summary.seconds:,.1f}",
            "/".join(run.data),
        )
        for run in runs
    ]


def effects(found: Iterable[Effect]) -> list[tuple[str, ...]]:
    """The comparisons; columns are `EFFECTS`."""
    rows: list[tuple[str, ...]] = []
    for each in found:
        paired = each.comparison.paired
        gain = paired.difference
        rows.append(
            (
                each.run.name,
                f"{gain.mean * 100:+.1f}",
                f"{gain.low * 100:+.1f} to {gain.high * 100:+.1f}",
                str(paired.gained),
                str(paired.lost),
                f"{paired.p:.2g}",
                f"{each.comparison.n:,}",
                each.against.name,
            )
        )
    return rows


def write_runs(runs: Sequence[Run], file: Path) -> None:
    """A line for each run: what it is, and its figures under the names that MLflow has (docs/tracking.md)."""
    rows = [
        {
            "run": run.name,
            "run_dir": str(run.path),
            "benchmark": run.summary.benchmark,
            "split": run.summary.split,
            "digest": run.summary.digest,
            "model": run.summary.model,
            "program": run.summary.program,
            **metrics_of(run.summary),
        }
        for run in runs
    ]
    _write(rows, list(dict.fromkeys(name for row in rows for name in row)), file)


def write_problems(runs: Sequence[Run], file: Path) -> None:
    """A line for each run, problem and sample."""
    rows = ({"run": run.name, **row} for run in runs for row in rows_of(read_results(run.path)))
    _write(rows, None, file)


def _write(rows: Iterable[dict[str, Any]], names: list[str] | None, file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8", errors="replace") as stream:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(stream, names or list(row))
                writer.writeheader()
            writer.writerow({name: _safe(value) for name, value in row.items()})


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets an apostrophe: models write it."""
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
