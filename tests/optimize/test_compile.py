"""Compiling on an Engine that writes programs only when it is shown how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from imitating import imitator, split
from local_engine import LocalEngine

from coda.errors import BudgetExceeded
from coda.optimize.compile import Compilation, CompileConfig, Compiler, Splits
from coda.optimize.observers import Observer, Observers
from coda.optimize.summary import read_summary
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Limits, Settings
from coda.program.tools.sandbox import shared_sandbox

CONFIG = CompileConfig(optimizer="random-search", probe=3, candidates=2, demos=2, concurrency=4)
SETTINGS = Settings(adapter="fields", plan=False, reflect=False, paths=("reason", "code"), quorum=2)


@pytest.fixture(autouse=True)
def _needs_sandbox() -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")


SPLITS = Splits(train=split("train", 100, 12), validation=split("validation", 200, 6), test=split("test", 300, 5))


class Quiet:
    """Watches, and notes what was measured."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_phase(self, phase: str, detail: str) -> None:
        pass

    @contextmanager
    def measuring(self, name: str, run_dir: Path) -> Iterator[Observer]:
        self.names.append(name)
        yield Observers()


def compiled(
    server: LocalEngine, run_dir: Path, limits: Limits | None = None, effort: CompileConfig = CONFIG
) -> tuple[Compilation, Quiet]:
    watcher = Quiet()
    config = EngineConfig(
        model="openai/test-model",
        api_base=server.api_base,
        limits=limits or Limits(),
        cache_dir=run_dir / "cache",
    )
    with Engine(config) as engine:
        compiler = Compiler(Coda(SETTINGS, engine=engine), SPLITS, effort, run_dir=run_dir, watcher=watcher)
        return compiler.run(), watcher


def test_it_finds_the_style_the_mode_and_the_demos_that_work(tmp_path: Path) -> None:
    with LocalEngine(imitator) as server:
        found, watcher = compiled(server, tmp_path)
    assert found.baseline.summary.accuracy == 0.0
    assert found.best.summary.accuracy == 1.0
    assert (found.test.accuracy, found.test.n) == (1.0, 5)
    settings = found.best.program.settings
    assert (settings.adapter, settings.paths) == ("plain", ("code",) * 4)
    assert (found.gain.gained, found.gain.lost) == (6, 0)
    assert [name for name in watcher.names if not name.startswith("probe")] == [
        "baseline",
        "calibrated",
        "labelled-0",
        "bootstrapped-1",
        "test",
        "test-baseline",
    ]
    assert found.proof is not None
    assert (found.proof.gained, found.proof.lost, found.proof.difference.mean) == (5, 0, 1.0)
    assert not found.proof.proven, "five problems prove nothing: p = 1/16"


def test_demos_come_from_training_problems_alone(tmp_path: Path) -> None:
    with LocalEngine(imitator) as server:
        found, _ = compiled(server, tmp_path)
    train = {example.problem.text for example in SPLITS.train.examples}
    shown = {demo.problem for each in found.measured for demo in each.program.executor.code.demos}
    assert shown
    assert shown <= train


def test_the_test_split_is_asked_once_and_only_of_the_best_program_and_the_baseline(tmp_path: Path) -> None:
    with LocalEngine(imitator) as server:
        found, _ = compiled(server, tmp_path)
        tested = [b for b in server.bodies if re.search(r"What is 30\d \+ 5", b["messages"][-1]["content"])]
    of_best = [body for body in tested if len(body["messages"]) > 2]
    assert len(of_best) == found.test.calls == 2 * 5
    assert len(tested) - len(of_best) == read_summary(tmp_path / "test-baseline").calls


def test_the_same_call_again_asks_nothing(tmp_path: Path) -> None:
    with LocalEngine(imitator) as server:
        first, _ = compiled(server, tmp_path)
        before = server.requests
        again, _ = compiled(server, tmp_path)
        repeated = server.requests - before
    assert again.best.name == first.best.name
    assert again.test.accuracy == first.test.accuracy
    assert repeated == 0


@pytest.mark.parametrize("cap", [30, 45, 60])
def test_the_budget_holds_to_the_request_and_the_best_so_far_is_proven(tmp_path: Path, cap: int) -> None:
    with LocalEngine(imitator) as server:
        found, _ = compiled(server, tmp_path, Limits(max_calls=cap))
        assert server.requests <= cap
    assert found.stopped is not None
    assert found.test.n == 5


def test_a_budget_too_small_for_the_baseline_says_so(tmp_path: Path) -> None:
    with LocalEngine(imitator) as server, pytest.raises(BudgetExceeded, match="before the baseline was measured"):
        compiled(server, tmp_path, Limits(max_calls=3))


@pytest.mark.parametrize("name", ["labeled", "auto"])
def test_labels_are_found_by_other_optimizers_too(tmp_path: Path, name: str) -> None:
    effort = CompileConfig.model_validate({**CONFIG.model_dump(), "optimizer": name, "rollouts": 30})
    with LocalEngine(imitator) as server:
        found, watcher = compiled(server, tmp_path, effort=effort)
    assert found.stopped is None, found.stopped
    assert (found.best.summary.accuracy, found.test.accuracy) == (1.0, 1.0)
    assert "labelled-0" in watcher.names
