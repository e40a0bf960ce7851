"""The evaluator with the real pipeline and a real HTTP engine: counts, budgets, faults, kills and Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from local_engine import RESET, SERVER_ERROR, UNAUTHORIZED, Answer, Fault, LocalEngine, Messages

from coda.data.examples import Benchmark, Example
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.records import read_results
from coda.optimize.rundir import RunDirectory
from coda.optimize.summary import Summary
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.ledger import Ledger
from coda.program.settings import Limits, Settings
from coda.program.types import Problem, Usage

SETTINGS = Settings(adapter="plain", plan=False, paths=("reason", "reason", "reason"), max_refinements=0)


def numbers(n: int) -> Benchmark:
    """ "What is 7?" is answered with 7."""
    examples = tuple(
        Example(id=f"p{i:03}", problem=Problem(text=f"What is {i}?"), answer=str(i), split="test") for i in range(n)
    )
    return Benchmark(name="numbers", examples=examples, digest="d1", split="test")


def asked_number(messages: Messages) -> str:
    return re.findall(r"What is (\d+)\?", str(messages))[-1]


def right(messages: Messages) -> str:
    return f"It is plain to see.\nAnswer: {asked_number(messages)}"


@contextmanager
def pipeline(server: LocalEngine, calls: Path | None = None, **config: Any) -> Iterator[Coda]:
    settings = EngineConfig(model="openai/test-model", api_base=server.api_base, **{"max_retries": 0, **config})
    with Engine(settings, ledger=Ledger(calls)) as engine:
        yield Coda(SETTINGS, engine=engine)


def measure(server: LocalEngine, n: int, run_dir: Path, *, concurrency: int = 8, **config: Any) -> Summary:
    with RunDirectory(run_dir) as run, pipeline(server, run.calls, **config) as program:
        return evaluate(program, numbers(n), EvaluationConfig(concurrency=concurrency), run_dir=run)


def test_the_summary_the_ledger_and_the_server_count_the_same(tmp_path: Path) -> None:
    with LocalEngine(right) as server:
        summary = measure(server, 12, tmp_path)
    assert (summary.n, summary.accuracy, summary.early_exit) == (12, 1.0, 1.0)
    assert (summary.calls, summary.prompt_tokens) == (server.requests, server.prompt_tokens)
    assert summary.completion_tokens == server.completion_tokens
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert len(lines) == server.requests
    assert {line["stage"] for line in lines} == {"executor"}
    total = sum((record.usage for record in read_results(tmp_path)), Usage())
    assert total.calls == server.requests


def test_failed_and_repeated_requests_are_counted_and_lose_no_problem(tmp_path: Path) -> None:
    def faults(number: int, _: dict[str, Any]) -> Fault | None:
        return SERVER_ERROR if number % 9 == 0 else RESET if number % 7 == 0 else None

    with LocalEngine(right, faults=faults) as server:
        summary = measure(server, 30, tmp_path, max_retries=4)
    assert (summary.n, summary.accuracy, summary.errors) == (30, 1.0, {})
    assert summary.calls == server.requests > 60


def test_an_engine_that_refuses_everybody_stops_the_run(tmp_path: Path) -> None:
    with LocalEngine(right, faults=lambda *_: UNAUTHORIZED) as server:
        stopped = measure(server, 100, tmp_path, concurrency=4)
        assert stopped.stopped is not None
        assert stopped.stopped.reason == "errors"
        assert stopped.errors == {"auth": stopped.n}
        assert stopped.n < 20
        assert stopped.gap is not None
        assert stopped.gap.lost == {"engine": stopped.n}
        server.faults = ()
        whole = measure(server, 100, tmp_path, concurrency=4)
    assert (whole.n, whole.accuracy, whole.errors) == (100, 1.0, {})


def test_replies_that_are_cut_off_show_as_truncated(tmp_path: Path) -> None:
    with LocalEngine(Answer("We have to think about this for", finish="length")) as server:
        summary = measure(server, 3, tmp_path)
    assert summary.gap is not None
    assert summary.gap.lost == {"truncated": 3}


@pytest.mark.sandbox
def test_programs_are_graded_on_hidden_tests_attempt_by_attempt(tmp_path: Path) -> None:
    """The first program fails a visible test and is repaired into one that passes it, but not the hidden test."""
    problem = Problem(text="Write double(n).", task="code", entry_point="double", tests=("assert double(2) == 4",))
    hidden = "assert double(5) == 10"
    example = Example(id="double", problem=problem, answer="", hidden_tests=(hidden,))
    one = Benchmark(name="programs", examples=(example,), digest="d1", split="test")
    replies = ["def double(n):\n    return 3", "def double(n):\n    return n + 2"]
    settings = SETTINGS.model_copy(update={"paths": ("code",), "quorum": 1, "max_refinements": 1})
    with LocalEngine([f"```python\n{reply}\n```" for reply in replies]) as server, pipeline(server) as program:
        summary = evaluate(program.with_settings(settings), one, run_dir=tmp_path)
    (record,) = read_results(tmp_path)
    (attempt,) = record.attempts
    assert attempt.execution is not None
    assert (attempt.execution.tests_passed, attempt.execution.tests_total) == (1, 1)
    assert (attempt.correct, [each.correct for each in attempt.earlier]) == (False, [False])
    assert (summary.accuracy, summary.early_exit) == (0.0, 1.0)
    assert summary.gap is not None
    assert summary.gap.lost == {"no-candidate": 1}
    assert summary.gap.programs == {"ok": 1, "wrong": 1}
    assert [(each.tried, each.fixed, each.broken) for each in summary.gap.refinement] == [(1, 0, 0)]


def test_a_budget_holds_to_the_request_and_the_next_command_goes_on(tmp_path: Path) -> None:
    with LocalEngine(right) as server:
        first = measure(server, 20, tmp_path, limits=Limits(max_calls=15))
        assert server.requests <= 15
        assert first.stopped is not None
        assert first.stopped.reason == "budget"
        assert first.calls == server.requests
        assert 0 < first.n < 20
        done = {record.problem.text for record in read_results(tmp_path)}
        before = len(server.bodies)
        whole = measure(server, 20, tmp_path)
        assert (whole.n, whole.accuracy, whole.stopped) == (20, 1.0, None)
        assert whole.calls == server.requests
    asked_again = {f"What is {asked_number(body['messages'])}?" for body in server.bodies[before:]}
    assert asked_again.isdisjoint(done)


def test_a_small_budget_is_spent_on_whole_problems(tmp_path: Path) -> None:
    """Two requests a problem: thirty requests are fifteen problems, however many could be worked on at once."""
    with LocalEngine(right, latency=0.005) as server:
        summary = measure(server, 40, tmp_path, concurrency=16, limits=Limits(max_calls=30))
        assert server.requests <= 30
    assert summary.n >= 13
    assert summary.unfinished.calls <= 4


def test_each_sample_is_drawn_anew_and_the_same_in_every_run(tmp_path: Path) -> None:
    def seeds(run_dir: Path) -> list[tuple[str, int]]:
        with LocalEngine(right) as server, pipeline(server, seed=7) as program:
            evaluate(program, numbers(2), EvaluationConfig(samples=3), run_dir=run_dir)
            return sorted((asked_number(body["messages"]), body["seed"]) for body in server.bodies)

    first = seeds(tmp_path / "a")
    assert len(set(first)) == len(first) == 2 * 3 * 2  # problems, samples, attempts until two agree
    assert seeds(tmp_path / "b") == first


def test_the_key_is_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-very-secret")
    with LocalEngine(right) as server:
        measure(server, 2, tmp_path, api_key_env="TEST_KEY")
        assert server.headers[-1]["authorization"] == "Bearer sk-very-secret"
    assert all(b"very-secret" not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


class Command:
    """An evaluation in a process of its own."""

    SCRIPT = """
        import importlib.util, pathlib, sys
        from local_engine import LocalEngine
        spec = importlib.util.spec_from_file_location("tests_of_the_engine", {here!r})
        tests = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tests)
        server = LocalEngine()
        server.api_base = sys.argv[1]
        print(tests.measure(server, int(sys.argv[2]), pathlib.Path(sys.argv[3]), concurrency=4).n)
    """

    def __init__(self, server: LocalEngine, n: int, run_dir: Path) -> None:
        here = Path(__file__)
        code = textwrap.dedent(self.SCRIPT.format(here=str(here)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, server.api_base, str(n), str(run_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(here.parents[1] / "support"), "PATH": "/usr/bin:/bin"},
        )

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stderr


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def results(run_dir: Path) -> int:
    file = run_dir / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def test_after_kill_9_no_finished_problem_is_asked_again_and_the_records_are_the_same(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with LocalEngine(right, latency=0.02) as server:
        measure(server, 60, whole)
        once = server.requests
        kept: list[set[str]] = []
        asked: list[Counter[str]] = []
        for share in (15, 35):
            before = len(server.bodies)
            command = Command(server, 60, killed)
            wait_until(lambda share=share: results(killed) >= share)
            assert command.end(signal.SIGKILL)[0] == -signal.SIGKILL
            kept.append({record.problem.text for record in read_results(killed)})
            asked.append(Counter(asked_number(body["messages"]) for body in server.bodies[before:]))
        before = len(server.bodies)
        summary = measure(server, 60, killed)
        asked.append(Counter(asked_number(body["messages"]) for body in server.bodies[before:]))
        assert (summary.n, summary.accuracy) == (60, 1.0)
    for number, texts in enumerate(kept):
        later = {f"What is {each}?" for counter in asked[number + 1 :] for each in counter}
        assert later.isdisjoint(texts)
    assert server.requests - once <= once + 2 * 4 * 2 * 2  # two kills, four problems in work, two requests each
    stories = [[record.model_dump(exclude={"seconds"}) for record in read_results(path)] for path in (whole, killed)]
    assert stories[0] == stories[1]


def test_ctrl_c_writes_down_what_is_there_and_says_that_it_was_interrupted(tmp_path: Path) -> None:
    with LocalEngine(right, latency=0.02) as server:
        command = Command(server, 200, tmp_path)
        wait_until(lambda: results(tmp_path) >= 5)
        status, stderr = command.end(signal.SIGINT)
        assert status != 0
        assert "KeyboardInterrupt" in stderr
        summary = Summary.model_validate_json((tmp_path / "summary.json").read_text())
        assert summary.stopped is not None
        assert summary.stopped.reason == "interrupted"
        assert summary.n == results(tmp_path) == len(list(read_results(tmp_path)))
        assert summary.calls == server.requests
