"""``coda gaps``: a run's whole gap report, stage by stage."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.display import show_summary
from coda.cli.options import Json
from coda.errors import RunError
from coda.optimize.gap import GapReport
from coda.optimize.summary import Summary, read_summary


def gaps(run_dir: Path, *, json: Json = False) -> int:
    """Show all figures of a run that is there: where right answers are found and lost, stage by stage.

    Args:
        run_dir: A run directory that ``coda eval`` wrote; of a baseline too, such as RUN/baselines/single.
        json: Print the gap report as one JSON document on stdout.
    """
    summary = read_summary(run_dir)
    if summary.gap is None:
        raise RunError(f"{run_dir} has no results yet. Go on with it: run its coda eval command again.")
    if json:
        emit_json(summary.gap)
        return 0
    show_summary(summary, run_dir)
    for table in (_stages(summary.gap), _cost(summary), _effort(summary.gap), _samples(summary)):
        if table.row_count:
            out.print()
            out.print(table)
    if summary.unfinished.calls:
        note(f"{summary.unfinished.calls} calls were paid for problems that have no result yet.")
    return 0


def _stages(gap: GapReport) -> Table:
    """What each stage was worth."""
    table = _table("What each stage was worth", "stage", "")
    plans, checks, judged, exits = gap.planner, gap.reflector, gap.verifier, gap.early_exit
    table.add_row("planner", f"{plans.engine} plans by the Engine, {plans.default} default")
    table.add_row(
        "", f"a path led to a right answer: {plans.coverage:.1%}; distinct answers: {plans.distinct_answers:.2f}"
    )
    for mode, found in gap.executor.items():
        share = found.right / found.attempts if found.attempts else 0.0
        table.add_row(
            mode, f"{found.right} of {found.attempts} attempts right ({share:.1%}), {found.no_answer} no answer"
        )
    if gap.programs:
        table.add_row("programs", ", ".join(f"{count} {outcome}" for outcome, count in gap.programs.items()))
    for each in gap.refinement:
        table.add_row(f"refinement {each.round}", f"{each.tried} tried, {each.fixed} fixed, {each.broken} broken")
    precision = "" if exits.precision is None else f", {exits.precision:.1%} of them right"
    table.add_row("early exit", f"{exits.rate:.1%} of results{precision}")
    table.add_row("reflector", f"{checks.ran} ran, {checks.right} right, {checks.fixed} fixed, {checks.broken} broken")
    table.add_row("verifier", f"chose a right attempt in {judged.chosen} of {judged.selectable} that had one")
    table.add_row("", f"in {judged.contested_chosen} of {judged.contested} where a wrong one stood against it")
    return table


def _cost(summary: Summary) -> Table:
    table = _table("What each stage cost", "stage", "calls", "prompt", "completion", "reasoning", "cached")
    for stage, usage in summary.stages.items():
        figures = (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached)
        table.add_row(stage, *map(str, figures))
    return table


def _effort(gap: GapReport) -> Table:
    table = _table("Accuracy against tokens", "tokens each, at most", "solved")
    for point in gap.effort:
        table.add_row(str(point.tokens), f"{point.solved:.1%}")
    return table


def _samples(summary: Summary) -> Table:
    table = _table("Several samples", "k", "pass@k", "maj@k")
    for k, share in summary.pass_at.items():
        table.add_row(str(k), f"{share:.1%}", f"{summary.maj_at[k]:.1%}" if k in summary.maj_at else "")
    return table


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
