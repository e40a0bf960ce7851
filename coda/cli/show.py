"""``coda show``: what is in a compiled pipeline, what was learned for it, and on how much evidence."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import Json
from coda.optimize.artifact import Description, Gain, ModeTrials, Trials, describe
from coda.optimize.stats import wilson


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
    for gain in manifest.gains:
        out.print(_gain(gain), markup=False)
    _print_learned(found)
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


def _gain(gain: Gain) -> str:
    low, high = (100 * bound for bound in gain.ci95)
    return (
        f"Against {gain.against} on {gain.n} {gain.split} problems: {100 * gain.difference:+.1f} points "
        f"({low:+.1f} to {high:+.1f}), {gain.gained} gained, {gain.lost} lost, p = {gain.p:.2g}."
    )


def _print_learned(found: Description) -> None:
    """What calibration concluded, and the counts that it was concluded from."""
    policy = found.policy
    if not (policy.counts or policy.choices):
        out.print("Nothing was learned by calibration.")
        return
    if policy.adapter is not None:
        chosen = [each for each in policy.counts if each.adapter == policy.adapter]
        out.print(f"Adapter style {policy.adapter}: {_evidence(chosen)}.", markup=False)
    for task, modes in policy.modes.items():
        tried = [each for each in policy.counts if each.adapter == policy.adapter and each.task == task]
        by_mode = {mode: [each for each in tried if each.mode == mode] for mode in modes}
        shown = ", then ".join(f"{mode} ({_evidence(by_mode[mode])})" for mode in modes)
        out.print(f"For {task}: {shown}.", markup=False)
    for name, options in policy.choices.items():
        shown = "; ".join(f"{option}: {_evidence([trials])}" for option, trials in options.items())
        out.print(f"Tried {name}: {shown}.", markup=False)
    table = _table("Learned by calibration", "task", "adapter", "mode", "right", "of", "95 % interval", "readable")
    for each in policy.counts:
        cells = (each.task, each.adapter, each.mode, each.successes, each.trials, _interval(each), each.readable)
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    out.print(table)


def _evidence(counts: list[ModeTrials] | list[Trials]) -> str:
    """Right answers of how many tries, with what that many tries can say."""
    successes, trials = sum(each.successes for each in counts), sum(each.trials for each in counts)
    if not trials:
        return "not tried"
    return f"{successes} of {trials} right, {_interval(Trials(successes=successes, trials=trials))}"


def _interval(counted: Trials) -> str:
    if not counted.trials:
        return ""
    low, high = wilson(counted.successes, counted.trials)
    return f"{low:.0%} to {high:.0%}"


def _predictors(found: Description) -> Table:
    table = _table("Prompts", "predictor", "demos", "characters", "instruction")
    for each in found.predictors:
        tuned = "tuned" if each.tuned else "as written"
        table.add_row(each.name, str(each.demos), str(each.characters), tuned)
    return table


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
