"""Baselines through the real pipeline and a real HTTP engine: what they ask, how they choose, what they cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from local_engine import LocalEngine, Messages

from coda.data.examples import Benchmark, Example
from coda.errors import UsageError
from coda.experiments.baselines import Baseline, equal_samples
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.optimize.records import read_results
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Settings
from coda.program.types import Problem


def numbers(n: int) -> Benchmark:
    examples = tuple(
        Example(id=f"p{i:03}", problem=Problem(text=f"What is {i}?"), answer=str(i), split="test") for i in range(n)
    )
    return Benchmark(name="numbers", examples=examples, digest="d1", split="test")


@contextmanager
def coda(server: LocalEngine) -> Iterator[Coda]:
    config = EngineConfig(model="openai/test-model", api_base=server.api_base, max_retries=0)
    with Engine(config) as engine:
        yield Coda(Settings(adapter="plain"), engine=engine)


def asked_number(messages: Messages) -> str:
    return re.findall(r"What is (\d+)", str(messages))[-1]


def right(messages: Messages) -> str:
    if "number of paths" in str(messages).lower():
        return "1. reason: think\n2. reason: think again"
    return f"Answer: {asked_number(messages)}"


def in_turn(*answers: str) -> list[str]:
    return [f"Answer: {answer}" for answer in answers]


def solve(baseline: str, samples: float, replies: Sequence[str]) -> tuple[str | None, int]:
    """The answer to one problem, and how many requests it took."""
    with LocalEngine(replies) as server, coda(server) as program:
        solution = Baseline(baseline, program, samples).solve(Problem(text="What is 7?"))  # type: ignore[arg-type]
        return solution.answer, server.requests


def test_single_is_one_request_for_each_problem(tmp_path: Path) -> None:
    with LocalEngine(right) as server, coda(server) as program:
        summary = evaluate(Baseline("single", program), numbers(5), run_dir=tmp_path)
        assert server.requests == summary.calls == summary.n == 5
    assert (summary.program, summary.accuracy) == ("single", 1.0)
    assert {record.plan.source for record in read_results(tmp_path)} == {"default"}
    assert set(summary.stages) == {"executor"}


def test_single_asks_as_the_program_that_it_stands_beside() -> None:
    with LocalEngine(right) as server, coda(server) as program:
        Baseline("single", program).solve(Problem(text="What is 7?"))
        in_words = program.settings.model_copy(update={"plan": False, "paths": ("reason",)})
        program.with_settings(in_words).solve(Problem(text="What is 7?"))
        alone, beside = server.bodies[:2]
    assert beside["messages"] == alone["messages"]
    assert beside.get("temperature") == alone.get("temperature")


def test_self_consistency_takes_the_most_frequent_answer_of_all_its_samples() -> None:
    assert solve("self-consistency", 3, in_turn("5", "7", "7")) == ("7", 3)


def test_best_of_n_compares_answers_that_differ_in_both_orders() -> None:
    replies = [*in_turn("5", "7"), "Answer: second", "Answer: first"]
    assert solve("best-of-n", 2, replies) == ("7", 4)


def test_best_of_n_compares_nothing_where_all_agree() -> None:
    assert solve("best-of-n", 3, in_turn("7", "7", "7")) == ("7", 3)


def test_a_broken_number_of_samples_is_met_on_average_and_by_the_same_problems(tmp_path: Path) -> None:
    def asked(run_dir: Path) -> dict[str, int]:
        with LocalEngine(right) as server, coda(server) as program:
            evaluate(Baseline("self-consistency", program, 2.25), numbers(80), run_dir=run_dir)
            texts = [asked_number(body["messages"]) for body in server.bodies]
        return dict(Counter(texts))

    first = asked(tmp_path / "a")
    assert set(first.values()) == {2, 3}
    assert sum(first.values()) / 80 == pytest.approx(2.25, abs=0.1)
    assert asked(tmp_path / "b") == first


def test_equal_samples_cost_as_much_as_the_program(tmp_path: Path) -> None:
    with LocalEngine(right) as server, coda(server) as program:
        whole = evaluate(program, numbers(60), run_dir=tmp_path / "coda")
        single = evaluate(Baseline("single", program), numbers(60), run_dir=tmp_path / "single")
        samples = equal_samples(whole.tokens / whole.n, single.tokens / single.n)
        equal = evaluate(Baseline("self-consistency", program, samples), numbers(60), run_dir=tmp_path / "equal")
    assert samples > 1.5
    assert equal.tokens == pytest.approx(whole.tokens, rel=0.06)
    assert equal.program == f"self-consistency@{samples:g}"


def test_equal_samples_need_an_engine_that_counts_tokens() -> None:
    with pytest.raises(UsageError, match="Equal tokens cannot be reckoned"):
        equal_samples(120.0, 0.0)


def test_numbers_of_samples_that_make_no_sense_are_refused() -> None:
    with LocalEngine(right) as server, coda(server) as program:
        with pytest.raises(UsageError, match="single takes 1"):
            Baseline("single", program, 2)
        with pytest.raises(UsageError, match="or more"):
            Baseline("self-consistency", program, 0.5)
        with pytest.raises(UsageError, match="A baseline of 61 samples"):
            Baseline("self-consistency", program, 60.5)
        assert len(Baseline("self-consistency", program, 60).settings.paths) == 60


@pytest.mark.sandbox
def test_for_a_problem_that_wants_a_program_an_answer_is_a_program(tmp_path: Path) -> None:
    problem = Problem(text="Write add(a, b).", task="code", entry_point="add", tests=("assert add(1, 2) == 3",))
    with LocalEngine("```python\ndef add(a, b):\n    return a + b\n```") as server, coda(server) as program:
        solution = Baseline("single", program).solve(problem)
        assert server.requests == 1
    assert solution.answer == "def add(a, b):\n    return a + b"
    assert solution.attempts[0].execution.tests_passed == 1


def test_samples_of_a_baseline_count_for_pass_at_k_like_any_other(tmp_path: Path) -> None:
    with LocalEngine(right) as server, coda(server) as program:
        config = EvaluationConfig(samples=2)
        summary = evaluate(Baseline("single", program), numbers(3), config, run_dir=tmp_path)
        assert server.requests == 6
    assert summary.pass_at == {1: 1.0, 2: 1.0}
