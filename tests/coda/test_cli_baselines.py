"""``coda eval --baseline``: baselines beside the pipeline, at equal tokens, in the same run."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from local_engine import LocalEngine
from mlflow import MlflowClient

from coda.experiments.equal_tokens import worth

STEADY = (
    "--set",
    "adapter=plain",
    "--set",
    'paths=["reason", "reason", "reason"]',
    "--set",
    "quorum=3",
    "--set",
    "straight=false",
)


def answered(messages: list[dict[str, Any]]) -> str:
    if "number of paths" in str(messages).lower():
        return "1. reason: count on your fingers\n2. reason: add the tens first\n3. reason: draw a line"
    first, second = re.findall(r"What is (\d+) \+ (\d+)", str(messages))[-1]
    return f"It is {int(first) + int(second)}.\nAnswer: {int(first) + int(second)}"


def sums(path: Path, n: int = 40) -> Path:
    rows = [{"problem": f"What is {i} + {i + 3}?", "answer": str(2 * i + 3), "split": "test"} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluation(server: LocalEngine, *more: str, run_dir: str = "run") -> tuple[str, ...]:
    engine = ("--model", "openai/test-model", "--api-base", server.api_base)
    return ("eval", str(sums(Path("sums.jsonl"))), *engine, "--run-dir", run_dir, *STEADY, *more)


def test_a_baseline_stands_beside_the_pipeline_at_equal_tokens(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, out, err = call(*evaluation(server, "--baseline", "self-consistency", "--json"))
    summary = json.loads(out)
    assert status == 0, err
    assert (summary["program"], summary["n"], summary["accuracy"]) == ("Coda", 40, 1.0)
    single, voted = summary["beside"]
    assert (single["baseline"], voted["baseline"]) == ("single", "self-consistency")
    assert voted["samples"] > 2
    assert voted["tokens_each"] == pytest.approx(voted["own_tokens_each"], rel=0.1)
    assert (voted["gain"], voted["gained"], voted["lost"], voted["p"]) == (0.0, 0, 0, 1.0)
    assert json.loads(Path("run/summary.json").read_text())["beside"] == summary["beside"]


def test_all_of_it_is_printed_in_one_table(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, out, _ = call(*evaluation(server, "--baseline", "self-consistency", "--baseline", "best-of-n"))
    assert status == 0
    lines = [line for line in out[out.index("Beside it") :].splitlines() if line]
    assert [line.split()[0].rstrip(",") for line in lines[2:6]] == ["Coda", "single", "self-consistency", "best-of-n"]
    assert lines[6] == "gain over single: +0.0 points (+0.0 to +0.0), 0 gained, 0 lost, p = 1"


def test_samples_of_baselines_are_shared_and_paid_for_once(call: Any) -> None:
    with LocalEngine(answered) as server:
        command = evaluation(
            server, "--baseline", "single", "--baseline", "self-consistency", "--baseline", "best-of-n"
        )
        _, out, _ = call(*command, "--json")
        asked = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
    summary = json.loads(out)
    single, voted, best = summary["beside"]
    assert max(asked.values()) == 1
    assert server.requests == summary["calls"] + sum(each["calls"] for each in summary["beside"])
    assert 0 < voted["calls"] <= 40 * (voted["samples"] - 1) + 20  # the first sample of each problem is the single call
    assert best["calls"] == 0  # all its samples are there, and none differ
    assert best["tokens_each"] == voted["tokens_each"] > single["tokens_each"]


def test_best_of_n_is_measured_with_fewer_samples_where_its_comparisons_make_it_dearer(call: Any) -> None:
    """Every sample gives another answer, so that all of them are compared."""
    numbers = itertools.count()

    def differing(messages: list[dict[str, Any]]) -> str:
        text = str(messages).lower()
        if "two attempts" in text:
            return "Answer: first"
        return answered(messages) if "number of paths" in text else f"Answer: {next(numbers)}"

    with LocalEngine(differing) as server:
        status, out, err = call(*evaluation(server, "--baseline", "best-of-n", "--json"))
        asked = Counter(json.dumps(body, sort_keys=True) for body in server.bodies)
    assert status == 0, err
    best = json.loads(out)["beside"][-1]
    first, *fewer = sorted(
        (float(each.name.partition("@")[2]) for each in Path("run/baselines").glob("best*")), reverse=True
    )
    assert fewer[-1] == best["samples"] < first
    assert best["tokens_each"] <= 1.1 * best["own_tokens_each"] or len(fewer) == 2
    assert max(asked.values()) == 1


def test_the_same_command_again_asks_nothing(call: Any) -> None:
    with LocalEngine(answered) as server:
        command = evaluation(server, "--baseline", "self-consistency", "--json")
        first = json.loads(call(*command)[1])
        asked = server.requests
        again = json.loads(call(*command)[1])
        assert server.requests == asked
    assert again["beside"] == first["beside"]


def test_a_baseline_can_be_added_to_a_run_that_is_there(call: Any) -> None:
    with LocalEngine(answered) as server:
        before = json.loads(call(*evaluation(server, "--json"))[1])
        after = json.loads(call(*evaluation(server, "--json", "--baseline", "single"))[1])
    assert before["beside"] == []
    assert [each["baseline"] for each in after["beside"]] == ["single"]
    assert after["calls"] == before["calls"]


def test_a_budget_that_ends_among_the_baselines_ends_with_3_and_goes_on(call: Any) -> None:
    with LocalEngine(answered) as server:
        calls = json.loads(call(*evaluation(server, "--json", run_dir="whole"))[1])["calls"]
        asked = server.requests
        limited = evaluation(server, "--baseline", "self-consistency", "--json", "--max-calls", str(calls + 50))
        status, out, _ = call(*limited)
        assert status == 3
        assert server.requests - asked <= calls + 50
        assert json.loads(out)["stopped"]["reason"] == "budget"
        status, out, _ = call(*evaluation(server, "--baseline", "self-consistency", "--json"))
    assert status == 0
    assert [each["n"] for each in json.loads(out)["beside"]] == [40, 40]


def test_baselines_are_child_runs_in_mlflow_and_figures_of_the_run(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, _, _ = call(*evaluation(server, "--baseline", "self-consistency"))
    assert status == 0
    client = MlflowClient(tracking_uri=f"sqlite:///{Path('runs/mlflow.db').resolve()}")
    (experiment,) = [each for each in client.search_experiments() if each.name == "coda"]
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = [each for each in runs if "mlflow.parentRunId" not in each.data.tags]
    children = [each for each in runs if each.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert {each.data.tags["coda.program"].partition("@")[0] for each in children} == {"single", "self-consistency"}
    assert parent.data.metrics["baseline/self-consistency/gain"] == 0.0
    assert parent.data.metrics["baseline/single/accuracy"] == 1.0


def test_a_baseline_alone_takes_the_pipeline_s_place(call: Any) -> None:
    alone = ("--baseline", "self-consistency", "--alone", "--baseline-samples", "2", "--json")
    with LocalEngine(answered) as server:
        status, out, _ = call(*evaluation(server, *alone))
        assert server.requests == 80
    assert (status, json.loads(out)["program"]) == (0, "self-consistency@2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--alone",), ["--alone", "--baseline"]),
        (("--baseline", "single", "--baseline", "best-of-n", "--alone"), ["--alone", "one baseline"]),
        (("--baseline", "best-of-n", "--baseline-samples", "3"), ["--baseline-samples", "--alone"]),
        (("--baseline", "sngle"), ["--baseline", "single"]),
    ],
)
def test_options_that_make_no_sense_together_are_refused(call: Any, more: tuple[str, ...], words: list[str]) -> None:
    with LocalEngine(answered) as server:
        status, out, err = call(*evaluation(server, *more))
        assert server.requests == 0
    assert (status, out) == (2, "")
    assert all(word in err for word in words), err


def test_a_reply_counts_once_whoever_paid_for_it(tmp_path: Path) -> None:
    def line(outcome: str, request: str, tokens: int, sample: int = 0) -> str:
        fields = {"time": 0.0, "model": "m", "outcome": outcome, "problem": "p", "sample": sample, "request": request}
        return json.dumps({**fields, "prompt_tokens": tokens, "completion_tokens": 1}) + "\n"

    ledger = tmp_path / "calls.jsonl"
    lines = [line("ok", "a", 9), line("cached", "a", 9), line("cached", "b", 19), line("joined", "b", 19)]
    ledger.write_text("".join([*lines, line("cached", "b", 19, sample=1), line("ok", "c", 99)[:20]]))
    assert worth(ledger) == 10 + 20 + 20
