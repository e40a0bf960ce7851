"""A compilation as it shows in a real MLflow store: a curve over what was spent, the artefact, the registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from imitating import imitator
from imitating import split as sums
from local_engine import LocalEngine

from coda.errors import NoGainError
from coda.experiments.compiling import compile_and_save
from coda.experiments.tracking import Tracker
from coda.optimize.artifact import read_manifest
from coda.optimize.compile import Compilation, CompileConfig, Splits
from coda.optimize.observers import Observer, Observers
from coda.optimize.rundir import RunDirectory
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.ledger import Ledger
from coda.program.settings import Settings
from coda.program.tools.sandbox import shared_sandbox

if TYPE_CHECKING:
    from mlflow import MlflowClient

CONFIG = CompileConfig(probe=2, candidates=2, demos=2, concurrency=4)
SETTINGS = Settings(
    adapter="fields", straight=False, plan=False, reflect=False, max_rounds=1, paths=("reason", "code"), quorum=2
)


split = partial(sums, benchmark="curved sums")
SPLITS = Splits(train=split("train", 100, 10), validation=split("validation", 200, 8), test=split("test", 300, 8))


@contextmanager
def silent(name: str) -> Iterator[Observer]:
    yield Observers()


def compiled(
    tracker: Tracker, folder: Path, splits: Splits = SPLITS, effort: CompileConfig = CONFIG
) -> tuple[Compilation, list[str], int]:
    """What compiling came to, what was said, and how many requests the server saw."""
    said: list[str] = []
    with LocalEngine(imitator) as server, RunDirectory(folder / "run") as directory:
        config = EngineConfig(model="openai/test-model", api_base=server.api_base)
        with Engine(config, ledger=Ledger(directory.calls)) as engine:
            found = compile_and_save(
                Coda(SETTINGS, engine=engine),
                splits,
                effort,
                run_dir=folder / "run",
                out=folder / "art",
                tracking=(tracker, silent, said.append),
            )
        return found, said, server.requests


def test_compilation_is_a_curve_over_spend_with_prompts_and_a_registered_champion(
    store: Path, client: MlflowClient, tmp_path: Path
) -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")
    found, said, requests = compiled(Tracker(directory=store, register=True), tmp_path)
    assert found.best.summary.accuracy == 1.0

    experiment = client.get_experiment_by_name("coda")
    (run,) = client.search_runs([experiment.experiment_id], "attributes.run_name = 'compile curved sums'")
    for unit in ("calls", "tokens"):
        points = client.get_metric_history(run.info.run_id, f"best/by_{unit}")
        steps = [point.step for point in points]
        assert len(points) == len(found.measured)
        assert steps == sorted(set(steps))
        assert [point.value for point in points] == sorted(point.value for point in points)
        assert (points[0].value, points[-1].value) == (0.0, 1.0)
    assert client.get_metric_history(run.info.run_id, "best/by_calls")[-1].step <= requests
    scores = [point.value for point in client.get_metric_history(run.info.run_id, "score/by_calls")]
    assert scores == [each.summary.score for each in found.measured]

    prompts = {file.path for file in client.list_artifacts(run.info.run_id, "artefact/prompts")}
    assert {"artefact/prompts/executor.code.md", "artefact/prompts/executor.code.json"} <= prompts
    version = client.get_model_version_by_alias("coda-test-model-curved-sums", "champion")
    assert version.run_id == run.info.run_id
    assert run.info.status == client.get_run(run.info.run_id).info.status == "FINISHED"
    assert said[-1].startswith("registry: models:/coda-test-model-curved-sums/1. It is proven better")
    assert {file.path for file in client.list_artifacts(run.info.run_id)} >= {"scores.json", "pipeline", "artefact"}


def test_registry_is_left_alone_unless_it_is_asked_for(store: Path, client: MlflowClient, tmp_path: Path) -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")
    before = {model.name for model in client.search_registered_models()}
    _, said, _ = compiled(Tracker(directory=store), tmp_path)
    assert {model.name for model in client.search_registered_models()} == before
    assert not [line for line in said if line.startswith("registry")]


PROVEN = CONFIG.model_copy(update={"require_gain": True})


def test_only_what_is_proven_better_is_published_where_that_is_required(store: Path, tmp_path: Path) -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")
    compiled(Tracker(directory=store), tmp_path / "many", effort=PROVEN)
    assert [gain.split for gain in read_manifest(tmp_path / "many" / "art").gains] == ["test", "validation"]
    few = Splits(train=SPLITS.train, validation=SPLITS.validation, test=split("test", 300, 4))
    with pytest.raises(NoGainError, match=r"\+100.0 points on the test split.* p = 0.12"):
        compiled(Tracker(directory=store), tmp_path / "few", few, PROVEN)
    assert not (tmp_path / "few" / "art").exists()
    assert (tmp_path / "few" / "run" / "test").exists()
