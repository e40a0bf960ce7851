"""``coda compare``: is one run better than another, or was it luck?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import Json
from coda.optimize.compare import Comparison
from coda.optimize.compare import compare as compare_runs

MOST_IDS = 20
"""Problems that are named of those which a run gained or lost."""


def compare(before: Path, after: Path, *others: Path, json: Json = False) -> int:
    """Compare runs with the first one, on the problems that both have.

    Args:
        before: The run directory to compare against.
        after: Another run directory.
        others: More of them.
        json: Print one JSON document.
    """
    found = compare_runs(before, after, *others)
    if json:
        emit_json([_document(each) for each in found])
        return 0
    table = Table("run", "accuracy", "tokens each", "difference", "95 % interval", "gained", "lost", "p", box=None)
    first = found[0].before
    table.add_row(str(first.run_dir), f"{first.accuracy.mean:.1%}", f"{first.tokens:.0f}")
    for each in found:
        gain = each.paired.difference
        table.add_row(
            str(each.after.run_dir),
            f"{each.after.accuracy.mean:.1%}",
            f"{each.after.tokens:.0f}",
            f"{gain.mean * 100:+.1f}",
            f"{gain.low * 100:+.1f} to {gain.high * 100:+.1f}",
            str(each.paired.gained),
            str(each.paired.lost),
            f"{each.paired.p:.2g}",
        )
    out.print(table)
    for each in found:
        for change, ids in (("gained", each.gained), ("lost", each.lost)):
            if ids:
                more = f", and {len(ids) - MOST_IDS} more (--json has all)" if len(ids) > MOST_IDS else ""
                out.print(f"{each.after.run_dir} {change}: {', '.join(ids[:MOST_IDS])}{more}", markup=False)
        note(
            f"{each.n} problems in common; they cannot show a difference of less than "
            f"{each.smallest_visible_gain * 100:.0f} points."
        )
    return 0


def _document(comparison: Comparison) -> dict[str, object]:
    document = asdict(comparison)
    for side in ("before", "after"):
        document[side]["run_dir"] = str(document[side]["run_dir"])
    return document
