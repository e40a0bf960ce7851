"""Asking before much is spent."""

from __future__ import annotations

import sys

from rich.prompt import Confirm
from rich.table import Table

from coda.cli.console import err, note
from coda.optimize.estimate import Cost, Estimate
from coda.program.settings import Limits


def consents(expected: Estimate, limits: Limits, *, yes: bool) -> bool:
    """Show what is likely to be spent, and ask whether to go on.

    Where nobody can answer (no terminal), it goes on and says so: the limits hold all the same.

    Args:
        expected: What is likely to be spent.
        limits: What may be spent at most.
        yes: Whether the user has said yes beforehand.
    """
    err.print(_table(expected))
    named = {name.replace("max_", ""): value for name, value in limits if value is not None}
    note("At most: " + ", ".join(f"{value:g} {name}" for name, value in named.items()) if named else "No limit is set.")
    if yes:
        return True
    if not (sys.stdin.isatty() and err.is_terminal):
        note("Nobody can be asked here (no terminal): going on. Limit it with --max-calls, --max-tokens or --max-usd.")
        return True
    return Confirm.ask("Go on?", console=err, default=True)


def _table(expected: Estimate) -> Table:
    table = Table(
        title=f"Likely cost, from {expected.probed} problems; a search may end before",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    priced = expected.total.usd is not None
    for column in ("phase", "problems", "calls", "tokens", "time", *(["USD"] if priced else [])):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for phase in expected.phases:
        table.add_row(phase.name, str(phase.problems), *_figures(phase.cost))
    table.add_row("[bold]total", str(sum(phase.problems for phase in expected.phases)), *_figures(expected.total))
    return table


def _figures(cost: Cost) -> list[str]:
    minutes, seconds = divmod(round(cost.seconds), 60)
    time = f"{minutes} min" if minutes >= 10 else f"{minutes}:{seconds:02d}"
    return [f"{cost.calls:.0f}", f"{cost.tokens:.0f}", time, *([] if cost.usd is None else [f"{cost.usd:.2f}"])]
