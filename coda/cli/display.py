"""Figures as people read them."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.optimize.compile import Compilation
from coda.optimize.gap import GapReport
from coda.optimize.measures import Share, StageMeasures
from coda.optimize.stats import PairedComparison, smallest_visible_gain
from coda.optimize.summary import Beside, Summary

__all__ = ["emit_json", "show_compilation", "show_summary"]


def show_summary(summary: Summary, run_dir: Path) -> None:
    """Print a run's figures and where its problems were lost."""
    low, high = summary.ci95
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_row("accuracy", f"[bold]{summary.accuracy:.1%}[/]  95 % interval {low:.1%} to {high:.1%}")
    facts.add_row("n", f"{summary.n} results on {summary.problems} problems of {summary.benchmark}/{summary.split}")
    facts.add_row("cost", f"{summary.calls} calls, {summary.tokens} tokens, {summary.seconds:.1f} s")
    facts.add_row("early exit", f"{summary.early_exit:.0%} of results")
    if summary.samples > 1:
        k = max(summary.pass_at, default=1)
        facts.add_row("samples", f"pass@{k} {summary.pass_at.get(k, 0):.1%}, maj@{k} {summary.maj_at.get(k, 0):.1%}")
    for kind, count in summary.errors.items():
        facts.add_row("errors", f"{count} × {kind}")
    facts.add_row("sandbox", summary.sandbox)
    out.print(facts)
    if summary.gap is not None:
        out.print(_gap(summary.gap))
    if summary.beside:
        _show_beside(summary)
    note(
        f"{summary.problems} problems cannot show a difference of less than "
        f"{summary.smallest_visible_gain * 100:.0f} points."
    )
    if summary.stopped is not None:
        note(f"Stopped early ({summary.stopped.reason}): {summary.stopped.message}")
    note(f"Everything is in {run_dir}; stage by stage: coda gaps {run_dir}")


def _show_beside(summary: Summary) -> None:
    """Print the program and its baselines, one below the other, and its gain over each."""
    table = Table(title="Beside it, same Engine and problems", title_justify="left", box=None, pad_edge=False)
    for column in ("", "accuracy", "95 % interval", "tokens each"):
        table.add_column(column, justify="right" if column else "left")
    own = summary.beside[0].own_tokens_each
    rows = [(summary.program, summary.accuracy, summary.ci95, own)]
    rows += [(_name(each), each.accuracy, each.ci95, each.tokens_each) for each in summary.beside]
    for name, accuracy, (low, high), tokens in rows:
        table.add_row(name, f"{accuracy:.1%}", f"{low:.1%} to {high:.1%}", f"{tokens:.0f}")
    out.print(table)
    for each in summary.beside:
        out.print(f"gain over {_name(each)}: {_gain(each.gain, each.gain_ci95, each)}")


def _name(baseline: Beside) -> str:
    named = baseline.baseline
    return named if named == "single" else f"{named}, {baseline.samples:g} samples"


def _gap(gap: GapReport) -> Table:
    table = Table(title="Where right answers are found and lost", title_justify="left", box=None, pad_edge=False)
    for name in ("single", "oracle", "majority", "verified", "final"):
        table.add_column(name, justify="right")
    table.add_row(*(f"{getattr(gap, name):.1%}" for name in ("single", "oracle", "majority", "verified", "final")))
    lost = ", ".join(f"{count} {loss.replace('_', ' ')}" for loss, count in gap.lost.items() if count)
    if lost:
        table.caption = f"wrong problems: {lost}"
        table.caption_justify = "left"
    return table


def _gain(mean: float, interval: tuple[float, float], flips: Beside | PairedComparison) -> str:
    """A gain in words, with its interval, the problems that flipped, and p."""
    low, high = interval
    return (
        f"{mean * 100:+.1f} points ({low * 100:+.1f} to {high * 100:+.1f}), "
        f"{flips.gained} gained, {flips.lost} lost, p = {flips.p:.2g}"
    )


def _paired(gain: PairedComparison) -> str:
    return _gain(gain.difference.mean, (gain.difference.low, gain.difference.high), gain)


def show_compilation(found: Compilation, folder: Path) -> None:
    """Print what compiling came to."""
    table = Table(title="Measured on validation", title_justify="left", box=None, pad_edge=False)
    for column in ("program", "accuracy", "95 % interval", "calls", "tokens"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for each in found.measured:
        low, high = each.summary.ci95
        mark = " ←" if each is found.best else ""
        table.add_row(
            each.name + mark,
            f"{each.summary.accuracy:.1%}",
            f"{low:.1%} to {high:.1%}",
            str(each.summary.calls),
            str(each.summary.tokens),
        )
    out.print(table)
    out.print(_stages({"baseline": found.baseline.stages, found.best.name: found.best.stages}))
    gain = found.gain
    out.print(f"gain over the baseline: {_paired(gain)}")
    note(
        f"{gain.difference.n} problems cannot show a difference of less than "
        f"{smallest_visible_gain(gain.difference.n) * 100:.0f} points."
    )
    low, high = found.test.ci95
    out.print(f"test split, once: [bold]{found.test.accuracy:.1%}[/] of {found.test.n}, {low:.1%} to {high:.1%}")
    if found.proof is not None:
        out.print(f"gain over the baseline there: {_paired(found.proof)}")
    if found.stopped:
        note(found.stopped)
    out.print(f"The compiled pipeline is in {folder}", markup=False)


def _stages(measured: dict[str, StageMeasures]) -> Table:
    """What each stage did for the problems, program by program."""
    table = Table(title="What each stage did", title_justify="left", box=None, pad_edge=False)
    for column in ("program", "a path was right", "paths right", "mended/spoilt", "fixed/broken", "right one chosen"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for name, stages in measured.items():
        table.add_row(
            name,
            _share(stages.coverage),
            _share(stages.success),
            f"{stages.mended}/{stages.spoilt}",
            f"{stages.fixed}/{stages.broken}",
            _share(stages.selection),
        )
    return table


def _share(share: Share) -> str:
    return "–" if share.value is None else f"{share.value:.0%}"
