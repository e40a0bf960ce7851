"""The main job on the real embedded Engine, cut down to a few problems."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

from coda.errors import UsageError
from coda.experiments.quickstart import QuickstartConfig, run_quickstart
from coda.experiments.tracking import Tracker
from coda.optimize.artifact import load
from coda.optimize.compile import CompileConfig
from coda.optimize.observers import Observers
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.ledger import Ledger
from coda.program.engine.weights import weights_path
from coda.program.tools.sandbox import shared_sandbox
from coda.program.types import Problem

SMALL = QuickstartConfig(
    limit=4,
    effort=CompileConfig(
        optimizer="random-search", probe=1, candidates=2, demos=4, train=24, validation=4, concurrency=8
    ),
)


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.xdist_group("embedded")
def test_the_main_job_runs_end_to_end(tmp_path: Path) -> None:
    try:
        weights_path("embedded")
    except UsageError as absent:
        pytest.skip(str(absent))
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")

    @contextmanager
    def silent(name: str):  # type: ignore[no-untyped-def]
        yield Observers()

    calls = tmp_path / "calls.jsonl"
    with Engine(EngineConfig(model="embedded", seed=0), ledger=Ledger(calls)) as engine:
        tracking = (Tracker(directory=tmp_path), silent, lambda _: None)
        done = run_quickstart(Coda(engine=engine), SMALL, directory=tmp_path / "quickstart", tracking=tracking)
        spent = engine.ledger.totals()
        compiled = load(done.artifact, engine=engine)
        solution = compiled.solve(Problem(text="There are 3 boxes with 4 pens in each. How many pens are there?"))

    figures = json.loads(done.summary.read_text())
    assert list(figures) == ["single", "coda", "compiled"]
    for each in figures.values():
        assert each.keys() == {"accuracy", "n", "ci95", "calls", "tokens", "seconds"}
    assert [each["n"] for each in figures.values()] == [4, 4, 4]
    lines = [json.loads(line) for line in calls.read_text().splitlines()]
    asked = [line for line in lines if line["outcome"] not in ("cached", "joined")]
    assert spent.calls <= len(asked)
    assert spent.tokens > 0
    assert any(done.prompts.glob("*.md"))
    assert solution.attempts
