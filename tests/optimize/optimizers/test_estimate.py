"""What compiling is said to cost, and that it is said before it is spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_engine import LocalEngine
from summing import SETTINGS, SPLITS, adder

from coda.optimize.config import CompileConfig
from coda.optimize.estimate import PROBLEMS, Cost, Estimate, estimate, phases
from coda.optimize.observers import Observers
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.config import Prices

CONFIG = CompileConfig(optimizer="gepa", probe=2, rollouts=50, finalists=2, concurrency=4, zero_shot=False)


def estimated(server: LocalEngine, run_dir: Path, prices: Prices | None = None) -> Estimate:
    setup = EngineConfig(model="openai/test-model", api_base=server.api_base, prices=prices)
    with Engine(setup) as engine:
        return estimate(Coda(SETTINGS, engine=engine), SPLITS, CONFIG, run_dir=run_dir, observer=Observers())


def test_each_phase_is_so_many_times_a_problem(tmp_path: Path) -> None:
    with LocalEngine(adder) as server:
        expected = estimated(server, tmp_path)
        calls, tokens = server.requests / PROBLEMS, (server.prompt_tokens + server.completion_tokens) / PROBLEMS
    found = {phase.name: phase for phase in expected.phases}
    assert expected.probed == PROBLEMS
    assert found["baseline"].cost.calls == pytest.approx(4 * calls)
    assert found["search (gepa)"].cost.tokens == pytest.approx(50 * tokens)
    assert found["candidates"].cost.calls == pytest.approx(2 * 4 * calls)
    assert found["proof"].problems == 2 * 3, "the best program and the baseline"
    assert expected.total.calls == pytest.approx(sum(phase.cost.calls for phase in expected.phases))


def test_it_asks_three_problems_once(tmp_path: Path) -> None:
    with LocalEngine(adder) as server:
        first = estimated(server, tmp_path)
        asked = server.requests
        again = estimated(server, tmp_path)
        assert server.requests == asked
    assert again.total.calls == first.total.calls
    assert len({body["messages"][-1]["content"].partition("+")[0] for body in server.bodies}) <= PROBLEMS * 2


def test_money_is_known_where_prices_are(tmp_path: Path) -> None:
    with LocalEngine(adder) as server:
        assert estimated(server, tmp_path / "a").total.usd is None
        total = estimated(server, tmp_path / "b", Prices(prompt=1.0, completion=2.0)).total
    assert total.usd == pytest.approx((total.prompt_tokens + 2 * total.completion_tokens) / 1e6)


def test_an_optimizer_that_runs_nothing_costs_its_candidates_alone() -> None:
    config = CONFIG.model_copy(update={"optimizer": "labeled", "candidates": 5})
    found = {phase.name: phase for phase in phases(Coda(SETTINGS), SPLITS, config, Cost(calls=3))}
    assert found["search (labeled)"].cost.calls == 0
    assert found["candidates"].problems == 5 * 4
