"""A whole evaluation, pipeline and HTTP engine included, as it shows in MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from local_engine import LocalEngine

from coda.data.examples import Benchmark, Example
from coda.experiments.tracking import Tracker
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.rundir import RunDirectory
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.ledger import Ledger
from coda.program.settings import Settings
from coda.program.types import Problem

if TYPE_CHECKING:
    from mlflow import MlflowClient

SETTINGS = Settings(adapter="plain", plan=False, paths=("reason", "reason", "reason"))


def benchmark() -> Benchmark:
    examples = tuple(
        Example(id=f"p{i}", problem=Problem(text=f"What is {i}?"), answer="1", split="test") for i in range(3)
    )
    return Benchmark(name="ones", examples=examples, digest="d1", split="test")


def test_figures_ledger_and_one_trace_per_problem_and_sample_and_no_key(
    store: Path, client: MlflowClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    tracker = Tracker(directory=store, trace=1.0)
    with LocalEngine("Answer: 1") as server, RunDirectory(tmp_path) as directory:
        config = EngineConfig(model="openai/test-model", api_base=server.api_base, api_key_env="TEST_KEY")
        with (
            Engine(config, ledger=Ledger(directory.calls)) as engine,
            tracker.run("whole", params={"settings": SETTINGS.model_dump()}, run_dir=tmp_path) as run,
        ):
            program = Coda(SETTINGS, engine=engine)
            summary = evaluate(program, benchmark(), EvaluationConfig(samples=2), run_dir=directory, observer=run)
    assert run.id is not None
    found = client.get_run(run.id)
    assert found.data.metrics["calls"] == summary.calls == server.requests == 12
    assert found.data.metrics["pass_at/2"] == 1.0
    assert found.data.metrics["stage/executor/calls"] == 12
    assert found.data.params["settings.quorum"] == "2"
    files = {file.path for file in client.list_artifacts(run.id)}
    assert files == {"config.json", "summary.json", "results.json", "calls.jsonl"}
    traces = client.search_traces(locations=[found.info.experiment_id], run_id=run.id)
    assert sorted((t.data.spans[0].inputs["text"], t.data.spans[0].inputs["sample"]) for t in traces) == [
        (f"What is {i}?", sample) for i in range(3) for sample in range(2)
    ]
    assert {tuple(span.name for span in t.data.spans) for t in traces} == {
        ("problem", "plan", "attempt", "attempt", "verdict")
    }
    for folder in (store, tmp_path):
        assert all(b"very-secret" not in file.read_bytes() for file in folder.rglob("*") if file.is_file())
