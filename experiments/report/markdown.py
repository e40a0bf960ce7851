"""The report as Markdown, for where a page cannot go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coda.experiments.report import tables
from coda.experiments.report.contents import STEPS, Contents, command, outcomes, settings_toml


def markdown(contents: Contents, made_by: str) -> str:
    """The report's figures, without the problems' stories."""
    parts = [f"# {_line(contents.title)}", "## Results", _table(tables.RESULTS, tables.results(contents.runs))]
    if contents.remarks:
        parts.append("\n".join(f"- {_line(remark)}" for remark in contents.remarks))
    if contents.effects:
        parts += ["## Differences, paired by problem", _table(tables.EFFECTS, tables.effects(contents.effects))]
    parts += ["## Where right answers are found and lost", _table(("run", *STEPS, "results"), _gaps(contents))]
    rounds = _rounds(contents)
    if rounds:
        parts += ["## Refinement", _table(("run", "round", "tried", "fixed", "broken"), rounds)]
    parts.append("## How it was measured")
    for run in contents.runs:
        parts += [f"### {_line(run.name)}", f"```sh\n{command(run)}\n```", f"```toml\n{settings_toml(run)}```"]
    parts.append(f"Made by `{made_by}`.")
    return "\n\n".join(parts) + "\n"


def _gaps(contents: Contents) -> list[tuple[str, ...]]:
    rows = []
    for run in contents.runs:
        gap = run.summary.gap
        shares = [f"{getattr(gap, name):.1%}" if gap is not None else "" for name in STEPS]
        rows.append((run.name, *shares, ", ".join(f"{count} {end}" for end, count in outcomes(run).items())))
    return rows


def _rounds(contents: Contents) -> list[tuple[str, ...]]:
    return [
        (run.name, str(each.round), str(each.tried), str(each.fixed), str(each.broken))
        for run in contents.runs
        if run.summary.gap is not None
        for each in run.summary.gap.refinement
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_line(cell) for cell in line) + " |" for line in lines)


def _line(text: str) -> str:
    """A text on one line, in which nothing is markup."""
    flat = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "|<`[*\\" else letter for letter in flat)
