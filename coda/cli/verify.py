"""``coda verify``: grade recorded answers, and try ways to choose among them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import dspy
from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import EngineOptions, Json
from coda.cli.progress import counting
from coda.optimize.recorded import read_recorded
from coda.optimize.verify import Choose, Verification, averify, by_verifier
from coda.program.adapters import adapter_for
from coda.program.concurrency import run_sync
from coda.program.types import Usage


def verify(
    samples: Path,
    *,
    benchmark: str | None = None,
    data_file: Path | None = None,
    json: Json = False,
    engine: EngineOptions | None = None,
) -> int:
    """Grade recorded answers, and try ways to choose among them. No Engine is asked, unless one is named.

    Args:
        samples: A JSONL file with rows {problem, answer, task?, choices?, samples: [{text, correct?}]}, or
            {id, samples: [{text}]} with --benchmark.
        benchmark: The benchmark that has the problems.
        data_file: A local file in the benchmark's own schema.
        json: Print one JSON document on stdout.
        engine: The Engine that compares answers in pairs, and judges each on its own; without --model none is asked.
    """
    recorded = read_recorded(samples, benchmark=benchmark, data_file=data_file)
    with ExitStack() as stack:
        strategies: dict[str, Choose] = {}
        opened = None
        if engine is not None:
            opened = stack.enter_context(engine.open())
            settings = opened.profile.settings()
            stack.enter_context(dspy.context(lm=opened.lm, adapter=adapter_for(settings.adapter)))
            strategies = {name: by_verifier(name, settings) for name in ("compare", "judge")}
        done = stack.enter_context(counting("verify", len(recorded)))
        found = run_sync(averify(recorded, strategies, done=done))
        cost = opened.ledger.totals() if opened is not None else Usage()
    if json:
        emit_json({**found.model_dump(mode="json"), "calls": cost.calls, "tokens": cost.tokens})
    else:
        _show(found)
    if cost.calls:
        note(f"{cost.calls} calls, {cost.tokens} tokens")
    if found.troubles:
        counts = ", ".join(f"{count} × {kind}" for kind, count in found.troubles.items())
        note(f"Requests that came to nothing ({counts}); the vote decided there. The first: {found.trouble}")
    return 3 if "budget" in found.troubles else 1 if found.troubles else 0


def _show(found: Verification) -> None:
    table = Table("", "share", "95 % interval", box=None, pad_edge=False)
    rows = {"pass@1": found.pass_at_1, **found.strategies, "oracle": found.oracle}
    for name, share in rows.items():
        low, high = found.ci95.get(name, found.ci95.get(name.replace("@", "_at_"), (share, share)))
        table.add_row(name, f"{share:.1%}", f"{low:.1%} to {high:.1%}")
    out.print(table)
    out.print(f"{found.n} problems, {found.samples} samples")
    if found.label_agreement is not None:
        out.print(f"graded as labelled: {found.label_agreement:.2%} of {found.labelled}")
    for each in found.disagreements:
        label = "right" if each.labelled else "wrong"
        note(f"{each.id}, sample {each.sample}: {each.answer!r} against {each.expected!r} is labelled {label}.")
