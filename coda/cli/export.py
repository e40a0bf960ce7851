"""``coda export`` and ``coda show``: what is in a compiled pipeline, and its prompts for use anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import Json
from coda.optimize.artifact import Description, check_prompts, describe
from coda.optimize.export import export as write_prompts


def export(
    folder: Path,
    *,
    format: Literal["messages", "markdown", "jinja", "python"] = "markdown",
    out: Annotated[Path | None, Parameter(name="--out")] = None,
    check: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write a compiled pipeline's prompts so that they can be used without DSPy.

    Args:
        folder: The compiled pipeline.
        format: "messages" (OpenAI JSON with slots), "markdown" (to read), "jinja" (templates), or "python" (one file
            that runs the prompts with the standard library alone).
        out: Where to; by default FOLDER-prompts.
        check: Write nothing; render the prompts in the folder again and say which are not as they should be.
    """
    from coda.cli.console import out as stdout

    if check:
        stale = check_prompts(folder)
        for name in stale:
            note(f"{folder / 'prompts' / name} is not what the program renders now.")
        return 1 if stale else 0
    target = out or folder.with_name(f"{folder.name}-prompts")
    for path in write_prompts(folder, format, target):
        stdout.print(str(path), markup=False)
    return 0


def show(folder: Path, *, json: Json = False) -> int:
    """Show what a compiled pipeline holds, what was learned, and what it was measured at.

    Args:
        folder: The compiled pipeline.
        json: Print one JSON document on stdout.
    """
    found = describe(folder)
    if json:
        emit_json(found)
        return 0
    manifest, benchmark = found.manifest, found.manifest.benchmark
    where = benchmark.name if benchmark is not None else "no benchmark"
    out.print(f"Compiled for {manifest.model} on {where} with {manifest.optimizer}, {manifest.created}.", markup=False)
    out.print(_scores(found))
    out.print(_learned(found))
    out.print(_predictors(found))
    for name, value in found.settings.items():
        out.print(f"setting {name} = {value}", markup=False)
    for caveat in found.caveats:
        note(caveat)
    return 0


def _scores(found: Description) -> Table:
    table = _table("Measured", "program", "split", "n", "accuracy", "95 % interval", "calls", "tokens")
    for each in found.manifest.scores:
        low, high = each.ci95
        cells = (each.program, each.split, each.n, f"{each.accuracy:.1%}", f"{low:.1%} to {high:.1%}")
        table.add_row(*map(str, cells), str(each.usage.calls), str(each.usage.tokens))
    return table


def _learned(found: Description) -> Table:
    table = _table("Learned by calibration", "task", "adapter", "mode", "right", "of", "readable")
    for each in found.policy.counts:
        table.add_row(*map(str, (each.task, each.adapter, each.mode, each.successes, each.trials, each.readable)))
    return table


def _predictors(found: Description) -> Table:
    table = _table("Prompts", "predictor", "demos", "characters", "instruction")
    for each in found.predictors:
        tuned = "tuned" if each.tuned else "as written"
        table.add_row(each.name, str(each.demos), str(each.characters), tuned)
    return table


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
