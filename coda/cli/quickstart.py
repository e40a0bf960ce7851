"""``coda quickstart``: the main job on the embedded Engine."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from coda.cli.console import emit_json, note, out
from coda.cli.options import EngineOptions, Json, ProgramOptions, TrackingOptions
from coda.cli.progress import EvaluationBar
from coda.experiments.quickstart import Quickstart, QuickstartConfig, run_quickstart
from coda.optimize.rundir import RunDirectory, read_document


def quickstart(
    *,
    run_dir: Path = Path("runs/quickstart"),
    json: Json = False,
    engine: EngineOptions | None = None,
    tracking: TrackingOptions | None = None,
) -> int:
    """Run the main job: measure a single call and the pipeline, compile, measure again, export the prompts.

    Args:
        run_dir: Where everything goes; the same command on the same directory goes on.
        json: Print the figures as one JSON document on stdout.
        engine: The Engine; by default the embedded one.
        tracking: Where MLflow keeps the runs.
    """
    tracker = (tracking or TrackingOptions()).tracker()
    with (
        RunDirectory(run_dir) as run,
        (engine or EngineOptions()).open(run.calls, cache_dir=run_dir / "cache") as opened,
    ):
        program = ProgramOptions().build(opened)
        done = run_quickstart(program, QuickstartConfig(), directory=run_dir, tracking=(tracker, EvaluationBar, note))
    if json:
        emit_json(read_document(done.summary))
    else:
        _show(done, tracker.uri)
    return 0


def _show(done: Quickstart, store: str) -> None:
    table = Table("", "accuracy", "95 % interval", "n", "calls", "tokens", "seconds", box=None, pad_edge=False)
    rows = (("single call", done.single), ("CODA, uncompiled", done.coda), ("CODA, compiled", done.compiled))
    for name, summary in rows:
        low, high = summary.ci95
        figures = (summary.n, summary.calls, summary.tokens, f"{summary.seconds:.0f}")
        table.add_row(name, f"[bold]{summary.accuracy:.1%}[/]", f"{low:.1%} to {high:.1%}", *map(str, figures))
    out.print(table)
    out.print(
        f"""
Next:
  mlflow ui --backend-store-uri {store}    # all runs, candidate by candidate
  less {done.prompts}/*.md                 # the tuned prompts
  coda show {done.artifact}                # what was learned about this Engine
  coda solve "Ana has 12 coins and gets 7 more. How many coins does Ana have?" --program {done.artifact}
  coda compile words --model openai/NAME --api-base http://HOST:PORT/v1    # the same for your own model""",
        markup=False,
    )
