"""One line for every request that left the process; the totals are what the server counted."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from asking import Connect, ask, lines
from local_engine import RATE_LIMIT, RESET, SERVER_ERROR, Answer, LocalEngine

from coda.errors import RunError
from coda.program.engine.labels import labelled
from coda.program.engine.ledger import Call, Ledger
from coda.program.types import Usage


def call(**details: Any) -> Call:
    return Call(**{"time": 1.0, "model": "m", "outcome": "ok", **details})


def test_totals_add_up_what_was_asked(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.jsonl")
    ledger.record(call(stage="executor", prompt_tokens=3, completion_tokens=4, reasoning_tokens=1))
    ledger.record(call(stage="executor", outcome="failed", fault="server", status=500))
    ledger.record(call(stage="verifier", outcome="truncated", prompt_tokens=1, completion_tokens=1))
    assert ledger.totals() == Usage(calls=3, prompt_tokens=4, completion_tokens=5, reasoning_tokens=1)
    assert ledger.by_stage()["verifier"] == Usage(calls=1, prompt_tokens=1, completion_tokens=1)
    assert len(lines(tmp_path / "calls.jsonl")) == 3


@pytest.mark.parametrize(("outcome", "cached"), [("cached", 1), ("joined", 1), ("unsent", 0)])
def test_lines_without_a_request_cost_nothing(outcome: Any, cached: int) -> None:
    ledger = Ledger()
    ledger.record(call(outcome=outcome, prompt_tokens=3, completion_tokens=4))
    assert ledger.totals() == Usage(cached=cached)


def test_a_half_written_last_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    whole = call().model_dump_json(exclude_none=True)
    path.write_text(f'{whole}\n{whole}\n{{"time": 2.0, "mod', "utf-8")
    ledger = Ledger(path)
    ledger.record(call(time=3.0))
    assert [line["time"] for line in lines(path)] == [1.0, 1.0, 3.0]


def test_a_file_that_is_one_half_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"time": 2.0, "mod', "utf-8")
    Ledger(path).record(call(time=3.0))
    assert [line["time"] for line in lines(path)] == [3.0]


def test_half_a_line_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text("{}\n" + "x" * 200_000, "utf-8")
    Ledger(path).record(call(time=3.0))
    assert lines(path)[0] == {}
    assert lines(path)[1]["time"] == 3.0


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(RunError, match=r"The ledger .*calls\.jsonl cannot be written"):
        Ledger(tmp_path / "calls.jsonl").record(call())


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.jsonl")

    def write() -> None:
        for _ in range(200):
            ledger.record(call(prompt_tokens=1))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(tmp_path / "calls.jsonl")) == ledger.totals().calls == 1600


async def test_a_line_says_what_the_request_was_for_and_what_came_of_it(connect: Connect, tmp_path: Path) -> None:
    answer = Answer("7", reasoning="3 + 4", cached_tokens=2, prompt_tokens=9, completion_tokens=6)
    with LocalEngine(answer) as local:
        engine = connect(local, ledger=Ledger(tmp_path / "calls.jsonl"))
        with labelled(problem="p1", sample=2), labelled(stage="executor", attempt=3):
            await ask(engine, max_tokens=50)
    (line,) = lines(tmp_path / "calls.jsonl")
    assert line.pop("time") > 1e9
    assert line.pop("seconds") >= 0
    assert len(line.pop("request")) == 16
    assert line == {
        "model": "openai/test-model",
        "outcome": "ok",
        "problem": "p1",
        "sample": 2,
        "stage": "executor",
        "attempt": 3,
        "retry": 0,
        "prompt_tokens": 9,
        "completion_tokens": 6,
        "reasoning_tokens": 3,
        "cached_tokens": 2,
        "max_tokens": 50,
    }


async def test_failed_and_repeated_requests_are_lines_as_the_server_counts_them(
    connect: Connect, tmp_path: Path
) -> None:
    with LocalEngine("42", faults=[RATE_LIMIT, SERVER_ERROR, RESET, None]) as local:
        engine = connect(local, ledger=Ledger(tmp_path / "calls.jsonl"))
        await ask(engine)
    written = lines(tmp_path / "calls.jsonl")
    assert [(line["outcome"], line.get("fault"), line.get("status"), line["retry"]) for line in written] == [
        ("failed", "rate-limit", 429, 0),
        ("failed", "server", 500, 1),
        ("failed", "connection", None, 2),
        ("ok", None, None, 3),
    ]
    assert len({line["request"] for line in written}) == 1
    total = engine.ledger.totals()
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (
        local.requests,
        local.prompt_tokens,
        local.completion_tokens,
    )
