"""What trackers show of a run: its summary as metrics with stable names (docs/tracking.md), its records as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coda.optimize.findings import finding
from coda.optimize.gap import GapReport
from coda.optimize.records import Record
from coda.optimize.summary import Summary

PLAIN = (
    *("accuracy", "score", "n", "problems", "calls", "tokens", "prompt_tokens", "completion_tokens"),
    *("reasoning_tokens", "cached", "seconds", "early_exit", "smallest_visible_gain"),
)
"""Fields of a summary that are metrics under their own names."""

MOST_TEXT = 300
"""Characters of an answer in a table."""


def metrics_of(summary: Summary) -> dict[str, float]:
    """A summary's figures as metrics."""
    metrics = {name: float(getattr(summary, name)) for name in PLAIN}
    metrics["accuracy/low"], metrics["accuracy/high"] = summary.ci95
    if summary.se is not None:
        metrics["accuracy/se"] = summary.se
    metrics |= {f"pass_at/{k}": value for k, value in summary.pass_at.items()}
    metrics |= {f"maj_at/{k}": value for k, value in summary.maj_at.items()}
    metrics["errors"] = float(sum(summary.errors.values()))
    metrics |= {f"errors/{kind}": float(count) for kind, count in summary.errors.items()}
    for stage, usage in summary.stages.items():
        metrics |= {f"stage/{stage}/calls": float(usage.calls), f"stage/{stage}/tokens": float(usage.tokens)}
    return metrics | (_gap_metrics(summary.gap) if summary.gap is not None else {})


def beside_metrics(summary: Summary) -> dict[str, float]:
    """The baselines that were measured beside a program, as metrics of its run."""
    names = ("accuracy", "samples", "tokens_each", "own_tokens_each", "gain", "gained", "lost", "p")
    found = {f"baseline/{each.baseline}/{name}": getattr(each, name) for each in summary.beside for name in names}
    for each in summary.beside:
        low, high = each.gain_ci95
        found |= {f"baseline/{each.baseline}/gain/low": low, f"baseline/{each.baseline}/gain/high": high}
    return {name: float(value) for name, value in found.items()}


def _gap_metrics(gap: GapReport) -> dict[str, float]:
    metrics = {f"gap/{name}": getattr(gap, name) for name in ("single", "oracle", "majority", "verified", "final")}
    metrics |= {f"lost/{loss}": float(count) for loss, count in gap.lost.items()}
    if gap.early_exit.precision is not None:
        metrics["early_exit/precision"] = gap.early_exit.precision
    metrics |= _numbers("planner", gap.planner.model_dump())
    for mode, found in gap.executor.items():
        metrics |= _numbers(f"executor/{mode}", found.model_dump())
    for each in gap.refinement:
        metrics |= _numbers(f"refinement/{each.round}", each.model_dump(exclude={"round"}))
    return metrics | _numbers("reflector", gap.reflector.model_dump()) | _numbers("verifier", gap.verifier.model_dump())


def _numbers(prefix: str, values: Mapping[str, Any]) -> dict[str, float]:
    return {f"{prefix}/{name}": float(value) for name, value in values.items()}


def rows_of(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """One row per record; long answers are cut."""
    return map(_row, records)


def table(records: Iterable[Record]) -> dict[str, list[Any]]:
    """The same as columns."""
    columns: dict[str, list[Any]] = {}
    for row in rows_of(records):
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _row(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "sample": record.sample,
        "correct": record.correct,
        "score": record.score,
        "answer": None if record.answer is None else record.answer[:MOST_TEXT],
        "expected": record.expected[:MOST_TEXT],
        "error": None if record.error is None else record.error.kind,
        "lost": finding(record).loss,
        "attempts": len(record.attempts),
        "early_exit": record.early_exit,
        "calls": record.usage.calls,
        "tokens": record.usage.tokens,
        "seconds": round(record.seconds, 3),
    }
