"""The evaluator with scripted programs: what is asked, kept, counted, stopped and resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coda.data.examples import Benchmark, Example
from coda.errors import BudgetExceeded, DataError, EngineError, RunError, UsageError
from coda.optimize.evaluate import EvaluationConfig, Observers, aevaluate
from coda.optimize.records import Record, read_results
from coda.optimize.rundir import RunDirectory, read_config
from coda.optimize.summary import Summary, read_summary
from coda.program.engine.budget import Budget, budgets_in_force, spending
from coda.program.engine.labels import current_labels, labelled
from coda.program.settings import Limits
from coda.program.types import Attempt, Plan, Problem, Solution, Usage, Verdict
from coda.program.types import Path as Route

Answer = Callable[[Problem], Awaitable[str | None]]


def benchmark(n: int) -> Benchmark:
    """Problems p00, p01, …, whose right answers are 0, 1, …"""
    examples = tuple(
        Example(id=f"p{i:02}", problem=Problem(text=f"What is {i}?"), answer=str(i), split="test") for i in range(n)
    )
    return Benchmark(name="numbers", examples=examples, digest="d1", split="test")


def solved(answer: str | None) -> Solution:
    attempt = Attempt(path=Route(mode="reason"), answer=answer)
    verdict = Verdict(answer=answer, confidence=1.0, chosen=None if answer is None else 0)
    return Solution(answer=answer, verdict=verdict, plan=Plan(paths=()), attempts=(attempt,))


class Scripted:
    """A program that knows the answer to "What is 7?", unless it is told otherwise."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int | None]] = []

    async def asolve(self, problem: Problem) -> Solution:
        self.asked.append((problem.text, current_labels().sample))
        await asyncio.sleep(0)
        return solved(await self.answer(problem) if self.answer else number(problem))


def number(problem: Problem) -> str:
    return problem.text.removeprefix("What is ").removesuffix("?")


class Watching:
    """An observer that takes notes."""

    def __init__(self) -> None:
        self.started: list[tuple[int, int]] = []
        self.results: list[Record] = []
        self.ended: list[Summary] = []

    def on_start(self, total: int, finished: int) -> None:
        self.started.append((total, finished))

    def on_result(self, record: Record) -> None:
        self.results.append(record)

    def on_end(self, summary: Summary) -> None:
        self.ended.append(summary)


async def test_every_problem_is_asked_once_graded_and_kept(tmp_path: Path) -> None:
    async def answer(problem: Problem) -> str:
        return "wrong" if number(problem) == "3" else number(problem)

    program, watching = Scripted(answer), Watching()
    summary = await aevaluate(program, benchmark(5), run_dir=tmp_path, observer=Observers(watching))
    assert sorted(program.asked) == [(f"What is {i}?", 0) for i in range(5)]
    assert (summary.n, summary.accuracy, summary.stopped) == (5, 0.8, None)
    assert [record.correct for record in read_results(tmp_path)] == [True, True, True, False, True]
    assert (watching.started, len(watching.results), watching.ended) == ([(5, 0)], 5, [summary])
    assert read_summary(tmp_path) == summary


async def test_no_more_problems_are_in_work_than_allowed(tmp_path: Path) -> None:
    running, most = 0, 0

    async def answer(problem: Problem) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return number(problem)

    await aevaluate(Scripted(answer), benchmark(40), EvaluationConfig(concurrency=3), run_dir=tmp_path)
    assert most == 3


async def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    first = await aevaluate(Scripted(), benchmark(4), run_dir=tmp_path)
    program, watching = Scripted(), Watching()
    second = await aevaluate(program, benchmark(4), run_dir=tmp_path, observer=watching)
    assert program.asked == []
    assert watching.started == [(4, 4)]
    assert second.model_copy(update={"seconds": first.seconds}) == first


async def test_an_interrupted_run_keeps_its_results_and_goes_on(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def stuck_at_three(problem: Problem) -> str:
        if number(problem) == "3":
            reached.set()
            await asyncio.sleep(60)
        return number(problem)

    running = asyncio.create_task(
        aevaluate(Scripted(stuck_at_three), benchmark(6), EvaluationConfig(concurrency=1), run_dir=tmp_path)
    )
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    interrupted = read_summary(tmp_path)
    assert (interrupted.n, interrupted.planned) == (3, 6)
    assert interrupted.stopped is not None
    assert interrupted.stopped.reason == "interrupted"
    program = Scripted()
    summary = await aevaluate(program, benchmark(6), run_dir=tmp_path)
    assert sorted(text for text, _ in program.asked) == ["What is 3?", "What is 4?", "What is 5?"]
    assert (summary.n, summary.accuracy, summary.stopped) == (6, 1.0, None)


async def test_errors_are_results_and_counted_by_kind(tmp_path: Path) -> None:
    async def answer(problem: Problem) -> str:
        match number(problem):
            case "1":
                raise EngineError("No reply within 3 s.", kind="timeout")
            case "2":
                raise ZeroDivisionError("a fault of ours")
            case "3":
                raise BudgetExceeded("The budget of 2 calls is used up.")
        return number(problem)

    summary = await aevaluate(Scripted(answer), benchmark(5), run_dir=tmp_path)
    assert (summary.n, summary.accuracy) == (5, 0.4)
    assert summary.errors == {"budget": 1, "timeout": 1, "unexpected": 1}
    records = {record.id: record for record in read_results(tmp_path)}
    assert records["p02"].error is not None
    assert records["p02"].error.message == "ZeroDivisionError: a fault of ours"
    assert summary.gap is not None
    assert summary.gap.lost == {"budget": 1, "engine": 1, "internal": 1}
    program = Scripted()
    await aevaluate(program, benchmark(5), run_dir=tmp_path)
    assert program.asked == []


async def test_errors_are_asked_again_on_request(tmp_path: Path) -> None:
    async def fails(problem: Problem) -> str:
        if number(problem) == "1":
            raise EngineError("reset", kind="connection")
        return number(problem)

    await aevaluate(Scripted(fails), benchmark(3), run_dir=tmp_path)
    program = Scripted()
    summary = await aevaluate(program, benchmark(3), EvaluationConfig(retry_errors=True), run_dir=tmp_path)
    assert program.asked == [("What is 1?", 0)]
    assert (summary.n, summary.accuracy, summary.errors) == (3, 1.0, {})


async def test_a_hopeless_run_stops_early_and_goes_on_when_mended(tmp_path: Path) -> None:
    async def down(problem: Problem) -> str:
        raise EngineError("Nothing answers.", kind="connection")

    config = EvaluationConfig(concurrency=2, max_error_rate=0.2)
    stopped = await aevaluate(Scripted(down), benchmark(50), config, run_dir=tmp_path)
    assert stopped.stopped is not None
    assert stopped.stopped.reason == "errors"
    assert "Nothing answers." in stopped.stopped.message
    assert 10 <= stopped.n <= 12
    program = Scripted()
    summary = await aevaluate(program, benchmark(50), config, run_dir=tmp_path)
    assert len(program.asked) == 50
    assert (summary.n, summary.accuracy, summary.errors, summary.stopped) == (50, 1.0, {}, None)


async def test_a_few_errors_do_not_stop_a_run(tmp_path: Path) -> None:
    async def some(problem: Problem) -> str:
        if int(number(problem)) < 12:
            raise EngineError("flaky", kind="server")
        return number(problem)

    config = EvaluationConfig(concurrency=1, max_error_rate=1.0)
    summary = await aevaluate(Scripted(some), benchmark(60), config, run_dir=tmp_path)
    assert (summary.n, summary.errors, summary.stopped) == (60, {"server": 12}, None)


async def test_problems_that_reach_their_own_limit_do_not_stop_a_run(tmp_path: Path) -> None:
    async def exhausted(problem: Problem) -> str:
        raise BudgetExceeded("The budget of 2 calls is used up.")

    summary = await aevaluate(Scripted(exhausted), benchmark(30), run_dir=tmp_path)
    assert (summary.n, summary.errors, summary.stopped) == (30, {"budget": 30}, None)


async def test_a_set_up_that_cannot_work_is_raised_at_once(tmp_path: Path) -> None:
    async def unusable(problem: Problem) -> str:
        raise UsageError("No Engine.")

    with pytest.raises(UsageError):
        await aevaluate(Scripted(unusable), benchmark(5), run_dir=tmp_path)
    assert not (tmp_path / "results.jsonl").exists()


class Paying(Scripted):
    """A program that makes one request of three tokens for each problem, where the budgets allow it."""

    async def asolve(self, problem: Problem) -> Solution:
        with labelled(stage="executor"):
            try:
                for budget in budgets_in_force():
                    budget.reserve(3)
            except BudgetExceeded as error:
                return solved(None).model_copy(update={"stopped": str(error), "fault": "budget"})
            for budget in budgets_in_force():
                budget.settle(3, Usage(calls=1, prompt_tokens=2, completion_tokens=1))
        return await super().asolve(problem)


async def test_cost_is_kept_by_problem_and_stage(tmp_path: Path) -> None:
    summary = await aevaluate(Paying(), benchmark(3), run_dir=tmp_path)
    assert (summary.calls, summary.tokens, summary.prompt_tokens, summary.completion_tokens) == (3, 9, 6, 3)
    once = Usage(calls=1, prompt_tokens=2, completion_tokens=1)
    assert [record.stages for record in read_results(tmp_path)] == [{"executor": once}] * 3
    assert summary.stages == {"executor": once + once + once}


async def test_the_end_of_the_budget_keeps_what_is_done_and_leaves_the_rest_to_the_next_command(
    tmp_path: Path,
) -> None:
    with spending(Budget(Limits(max_calls=4))):
        summary = await aevaluate(Paying(), benchmark(9), EvaluationConfig(concurrency=2), run_dir=tmp_path)
    assert (summary.n, summary.accuracy, summary.calls) == (4, 1.0, 4)
    assert summary.stopped is not None
    assert summary.stopped.reason == "budget"
    assert "--max-calls" in summary.stopped.message
    program = Paying()
    whole = await aevaluate(program, benchmark(9), run_dir=tmp_path)
    assert len(program.asked) == 5
    assert (whole.n, whole.calls, whole.stopped) == (9, 9, None)


async def test_samples_are_told_apart_by_their_label_and_summed_up(tmp_path: Path) -> None:
    async def answer(problem: Problem) -> str:
        return number(problem) if (current_labels().sample or 0) < 2 else "9"

    program = Scripted(answer)
    summary = await aevaluate(program, benchmark(2), EvaluationConfig(samples=3), run_dir=tmp_path)
    assert sorted(program.asked) == [(f"What is {i}?", sample) for i in range(2) for sample in range(3)]
    assert (summary.n, summary.problems, summary.samples) == (6, 2, 3)
    assert summary.accuracy == pytest.approx(2 / 3)
    assert summary.pass_at == pytest.approx({1: 2 / 3, 2: 1.0, 3: 1.0})
    assert summary.maj_at == pytest.approx({1: 2 / 3, 2: (1 + 0.5 + 0.5) / 3, 3: 1.0})


async def test_problems_are_asked_once_before_any_is_asked_again(tmp_path: Path) -> None:
    program = Scripted()
    await aevaluate(program, benchmark(3), EvaluationConfig(samples=2, concurrency=1), run_dir=tmp_path)
    assert [sample for _, sample in program.asked] == [0, 0, 0, 1, 1, 1]


async def test_ids_and_limit_choose_problems(tmp_path: Path) -> None:
    program = Scripted()
    config = EvaluationConfig(ids=("p04", "p01", "p02"), limit=2)
    summary = await aevaluate(program, benchmark(5), config, run_dir=tmp_path)
    assert sorted(text for text, _ in program.asked) == ["What is 1?", "What is 2?"]
    assert summary.planned == 2


async def test_unknown_ids_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="numbers has no problem p99"):
        await aevaluate(Scripted(), benchmark(5), EvaluationConfig(ids=("p01", "p99")), run_dir=tmp_path)


async def test_nothing_left_to_ask_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no problem is left"):
        await aevaluate(Scripted(), benchmark(0), run_dir=tmp_path)


async def test_ids_that_are_not_unique_are_refused(tmp_path: Path) -> None:
    one = benchmark(1)
    twice = one.model_copy(update={"examples": one.examples * 2})
    with pytest.raises(DataError, match="not unique"):
        await aevaluate(Scripted(), twice, run_dir=tmp_path)


async def test_a_run_of_another_configuration_is_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    await aevaluate(Scripted(), benchmark(3), run_dir=tmp_path)
    changed = benchmark(3).model_copy(update={"digest": "d2"})
    with pytest.raises(
        RunError, match=r'benchmark\.digest is "d1" there and "d2" now; evaluation\.samples is 1 there and 2'
    ):
        await aevaluate(Scripted(), changed, EvaluationConfig(samples=2), run_dir=tmp_path)


async def test_concurrency_and_patience_may_change_from_command_to_command(tmp_path: Path) -> None:
    await aevaluate(Scripted(), benchmark(3), run_dir=tmp_path)
    config = EvaluationConfig(concurrency=2, max_error_rate=0.9, retry_errors=True)
    assert (await aevaluate(Scripted(), benchmark(3), config, run_dir=tmp_path)).n == 3


async def test_a_directory_that_the_caller_has_locked_already_is_used(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as run:
        summary = await aevaluate(Scripted(), benchmark(2), run_dir=run)
        with pytest.raises(RunError, match="in use"):
            await aevaluate(Scripted(), benchmark(2), run_dir=tmp_path)
    assert summary.n == 2
    assert read_config(tmp_path)["identity"]["program"]["name"] == "Scripted"


async def test_the_summary_on_disk_has_the_documented_names(tmp_path: Path) -> None:
    await aevaluate(Scripted(), benchmark(2), run_dir=tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    result = json.loads((tmp_path / "results.jsonl").read_text().splitlines()[0])
    documented = Path(__file__).parents[2].joinpath("docs", "records.md").read_text()
    assert [name for name in [*summary, *result] if f"`{name}`" not in documented] == []


async def test_memory_does_not_grow_with_what_records_hold(tmp_path: Path) -> None:
    async def long_winded(problem: Problem) -> str:
        return number(problem) + " " * 10_000

    import tracemalloc

    tracemalloc.start()
    try:
        await aevaluate(Scripted(long_winded), benchmark(400), run_dir=tmp_path)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "results.jsonl").stat().st_size > 400 * 30_000
    assert held < 4_000_000
