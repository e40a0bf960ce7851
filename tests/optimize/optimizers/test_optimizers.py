"""Every optimizer runs to its end on a small budget, and never makes one request more than it may."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from local_engine import SERVER_ERROR, Answer
from summing import ADVICE, SPLITS, Compiling, adder

from coda.errors import EngineError, UsageError
from coda.optimize.compile import Compilation, CompileConfig, Compiler
from coda.optimize.optimizers import OPTIMIZERS
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Limits, Settings
from coda.signatures.execution import Reason

SMALL: dict[str, Any] = {"probe": 1, "candidates": 3, "demos": 2, "rollouts": 60, "finalists": 2, "concurrency": 4}
RUNNABLE = [name for name in OPTIMIZERS if name != "labeled"]  # the sums have no reference programs
WRITERS = ["copro", "gepa", "mipro", "infer-rules", "better-together", "auto"]

SINGLE = Settings(plan=False, paths=("reason",), max_paths=1, quorum=1, reflect=False, max_rounds=1)
"""One request for each problem."""


def small(name: str, **changes: Any) -> CompileConfig:
    return CompileConfig.model_validate({"optimizer": name, **SMALL, **changes})


def instruction(found: Compilation) -> str:
    return str(found.best.program.executor.reason.signature.instructions)


@pytest.mark.parametrize("name", RUNNABLE)
def test_it_runs_to_its_end(compiling: Compiling, name: str) -> None:
    found = compiling(small(name))
    assert found.stopped is None, found.stopped
    assert (found.baseline.summary.n, found.test.n) == (4, 3)
    assert found.best.summary.score >= found.baseline.summary.score
    assert all(p.lm is None for each in found.measured for _, p in each.program.named_predictors())


@pytest.mark.parametrize("name", WRITERS)
def test_it_finds_the_instruction_that_helps(compiling: Compiling, name: str) -> None:
    found = compiling(small(name, only="executor", rollouts=120))
    assert ADVICE in instruction(found)
    assert found.best.summary.accuracy == found.test.accuracy == 1.0


def test_simba_finds_it_where_problems_come_out_now_right_and_now_wrong(compiling: Compiling) -> None:
    asked: Counter[str] = Counter()

    def moody(messages: list[dict[str, Any]]) -> str:
        """Takes care every second time that it is asked the same, whatever it is told."""
        text = messages[-1]["content"]
        asked[text] += 1
        return adder([{"content": "take care"}, messages[-1]] if asked[text] % 2 else messages)

    compiling.engine.script = moody
    found = compiling(small("simba", only="executor", rollouts=120), settings=SINGLE)
    assert any(ADVICE in each.program.executor.reason.signature.instructions for each in found.measured)


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_server_never_counts_one_request_more_than_the_cap(compiling: Compiling, name: str) -> None:
    found = compiling(small(name, rollouts=400), Limits(max_calls=151))
    assert compiling.engine.requests <= 151
    assert found.test.n == 3


def test_at_the_cap_the_best_so_far_is_proven_and_the_reason_said(compiling: Compiling) -> None:
    found = compiling(small("simba", rollouts=400), Limits(max_calls=110))
    assert compiling.engine.requests <= 110
    assert found.stopped is not None
    assert "--max-calls" in found.stopped
    assert found.test.n == 3


@pytest.mark.parametrize("name", ["gepa", "simba", "copro", "random-search"])
def test_an_engine_that_goes_down_ends_it_and_is_no_row_of_zeros(compiling: Compiling, name: str) -> None:
    def searching() -> bool:
        return any(said.startswith("search") for said in compiling.watcher.said)

    compiling.engine.faults = lambda number, body: SERVER_ERROR if searching() else None
    with pytest.raises(EngineError):
        compiling(small(name, zero_shot=False), retries=0)


@pytest.mark.parametrize("name", WRITERS)
def test_stages_that_are_not_named_stay_as_they_are(compiling: Compiling, name: str) -> None:
    found = compiling(small(name, only="planner"))
    before = dict(Coda().named_predictors())
    for measured in found.measured:
        for predictor, now in measured.program.named_predictors():
            if not predictor.startswith("planner."):
                assert now.signature.instructions == before[predictor].signature.instructions
                assert now.demos == []


@pytest.mark.parametrize("name", ["infer-rules", "copro"])
def test_signatures_of_the_process_are_left_alone(compiling: Compiling, name: str) -> None:
    before = Reason.instructions
    compiling(small(name))
    assert Reason.instructions == before


def test_other_models_write_instructions_and_make_demos(compiling: Compiling) -> None:
    compiling(small("gepa", only="executor", reflection_model="openai/other-model"))
    reflecting = [body for body in compiling.engine.bodies if body["model"] == "other-model"]
    assert reflecting
    assert not any("Solve the problem step by step" in body["messages"][0]["content"] for body in reflecting)


def test_a_teacher_makes_the_demos_within_the_same_cap(compiling: Compiling) -> None:
    found = compiling(small("bootstrap", teacher_model="openai/other-model"), Limits(max_calls=200))
    models = Counter(body["model"] for body in compiling.engine.bodies)
    assert models["other-model"] > 0
    assert sum(models.values()) == compiling.engine.requests <= 200
    assert found.measured[-1].program.executor.reason.demos


def test_a_model_that_does_not_exist_is_found_before_any_request(compiling: Compiling) -> None:
    with pytest.raises(UsageError):
        compiling(small("gepa", reflection_model="openai/no-such-model"))
    assert compiling.engine.requests == 0


def test_missing_optuna_is_found_before_any_request(compiling: Compiling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"coda-conductor\[optimizers\]"):
        compiling(small("mipro"))
    assert compiling.engine.requests == 0


def test_labels_that_do_not_exist_are_missed_before_any_request(compiling: Compiling) -> None:
    with pytest.raises(UsageError, match="reference programs"):
        compiling(small("labeled"))
    assert compiling.engine.requests == 0


@pytest.mark.parametrize("name", ["gepa", "copro"])
def test_the_same_call_again_asks_nothing_and_finds_the_same(compiling: Compiling, name: str) -> None:
    first = compiling(small(name, only="executor"))
    before = compiling.engine.requests
    again = compiling(small(name, only="executor"))
    assert compiling.engine.requests == before
    assert instruction(again) == instruction(first)


def test_replies_that_cannot_be_read_do_not_fail_an_optimizer(compiling: Compiling) -> None:
    compiling.engine.script = lambda messages: Answer("Well, that depends.")
    for name in WRITERS:
        compiling.run_dir = compiling.run_dir / name
        found = compiling(small(name, rollouts=30))
        assert found.test.n == 3


def test_too_few_training_problems_are_found_before_anything_is_spent(tmp_path: Path) -> None:
    with Engine(EngineConfig(model="openai/test-model", api_base="http://127.0.0.1:9/v1")) as engine:
        program = Coda(engine=engine)
        with pytest.raises(UsageError, match="at least 4 training problems"):
            Compiler(program, SPLITS, small("gepa", train=2), run_dir=tmp_path, watcher=None)  # type: ignore[arg-type]
