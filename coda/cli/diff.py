"""``coda diff``: in what two compiled pipelines differ."""

from __future__ import annotations

import difflib
import json as jsonlib
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, out
from coda.cli.options import Json
from coda.optimize.artifact import DemoChange, Difference, Score, difference

MOST_TEXT = 200
"""Characters of a demo's field."""


def diff(first: Path, second: Path, *, json: Json = False) -> int:
    """Show in what two compiled pipelines differ: instructions, demos, settings, policy, origin, scores.

    Args:
        first: A compiled pipeline.
        second: Another one.
        json: Print one JSON document on stdout.
    """
    found = difference(first, second)
    if json:
        emit_json({**found.model_dump(mode="json"), "same_program": found.same_program})
        return 0
    out.print("Both send the same requests." if found.same_program else "They send other requests.")
    for name, (before, after) in found.instructions.items():
        out.print(f"\n{name}: instructions", markup=False)
        for line in _text_changes(before, after):
            out.print(f"  {line}", markup=False)
    for name, change in found.demos.items():
        _print_demos(name, change)
    _print_changes("Field descriptions", found.fields)
    _print_changes("Settings", found.settings)
    _print_changes("Policy", found.policy)
    _print_changes("Origin", found.origin)
    _print_scores(found)
    return 0


def _text_changes(before: str, after: str) -> list[str]:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
    return lines[2:] or ["(line ends differ)"]


def _print_demos(name: str, change: DemoChange) -> None:
    if change.reordered:
        out.print(f"\n{name}: the same {change.shared} demos in another order", markup=False)
        return
    out.print(f"\n{name}: demos, {change.shared} shared", markup=False)
    for sign, demos in (("-", change.only_first), ("+", change.only_second)):
        for demo in demos:
            out.print(f"  {sign} {_shortened(demo)}", markup=False)


def _shortened(demo: Mapping[str, object]) -> str:
    texts = {name: value if isinstance(value, str) else jsonlib.dumps(value) for name, value in demo.items()}
    cut = {name: text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…" for name, text in texts.items()}
    return jsonlib.dumps(cut, ensure_ascii=False)


def _print_changes(title: str, changes: Mapping[str, tuple[object, object]]) -> None:
    if changes:
        out.print(f"\n{title}")
    for name, (before, after) in changes.items():
        out.print(f"  {name}: {before} → {after}", markup=False)


def _print_scores(found: Difference) -> None:
    table = Table("program", "split", "first", "second", title="Scores", title_justify="left", box=None, pad_edge=False)
    for pair in found.scores:
        known = next(score for score in pair if score is not None)
        table.add_row(known.program, known.split, *map(_score, pair))
    if found.scores:
        out.print()
        out.print(table)


def _score(score: Score | None) -> str:
    return "" if score is None else f"{score.accuracy:.1%} ({score.ci95[0]:.1%} to {score.ci95[1]:.1%}), n = {score.n}"
