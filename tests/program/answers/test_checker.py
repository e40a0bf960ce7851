"""The worker processes: started when needed, ended when they hang, never in the way."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coda.program.answers import checker as module
from coda.program.answers.checker import Checker
from coda.program.answers.equivalence import aequivalent, equivalent, group
from coda.program.concurrency import run_sync

HANGS = "10^{10^{10^{10}}}"


@pytest.fixture
def checker() -> Iterator[Checker]:
    checker = Checker(workers=2, seconds=0.5)
    yield checker
    checker.close()


def about(checker: Checker, what: str) -> str:
    """What the kernel says about a worker."""
    return Path(f"/proc/{checker._idle[0].process.pid}/{what}").read_text()


async def test_plain_answers_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> Checker:
        raise AssertionError("a worker process was asked for")

    monkeypatch.setattr("coda.program.answers.equivalence.shared_checker", start)
    assert await aequivalent("1/2", "0.5", "math")
    assert not equivalent("12 apples", "13", "math")
    assert not equivalent("east", "west", "math")
    assert await group(["3", "3.0", "4", None], "math") == [[0, 1], [2]]


async def test_a_hanging_comparison_costs_its_limit_and_nothing_else(checker: Checker) -> None:
    hanging = asyncio.ensure_future(checker.same(HANGS, "3"))
    assert await checker.same("x+1", "1+x")
    assert await hanging is False
    assert await checker.same("x+2", "2+x")


async def test_no_more_processes_than_workers(checker: Checker) -> None:
    verdicts = await asyncio.gather(*(checker.same(f"x+{n}", f"{n}+x") for n in range(40)))
    assert all(verdicts)
    assert checker.started == 2


async def test_a_verdict_is_remembered(checker: Checker) -> None:
    assert await checker.same(HANGS, "3") is False
    started = checker.started
    assert await checker.same(HANGS, "3") is False
    assert checker.started == started


async def test_memory_is_limited(checker: Checker) -> None:
    assert await checker.same("x+1", "1+x")
    assert re.search(rf"Max address space +{module.MEMORY_MB << 20} ", about(checker, "limits"))


async def test_a_cancelled_comparison_leaves_the_pool_good(checker: Checker) -> None:
    hanging = asyncio.ensure_future(checker.same(HANGS, "4"))
    await asyncio.sleep(0.1)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert await checker.same("x+1", "1+x")


async def test_nonsense_is_not_the_same_and_not_an_error(checker: Checker) -> None:
    for text in ("(" * 3000, "\\frac{" * 500, "\n", '"', "\\", "\x00", "é" * 100, "\ud800"):
        assert await checker.same("x", text) is False


async def test_from_any_loop_and_thread(checker: Checker) -> None:
    assert await checker.same("x+1", "1+x")
    assert await asyncio.to_thread(run_sync, checker.same("x+3", "3+x"))


async def test_workers_that_cannot_start_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "worker.py"
    broken.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(module, "_PROGRAM", broken)
    with pytest.raises(module.CodaError, match=r"ended with status 3 while it was starting\. See why with:"):
        await Checker().same("x", "y")


async def test_no_key_reaches_a_worker(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert await checker.same("x+1", "1+x")
    assert "PATH=" in about(checker, "environ")
    assert "secret" not in about(checker, "environ")


SCRIPT = """
print("once")
from coda.program.answers import equivalent
assert equivalent("x + 1", "1 + x", "math")
from coda.program.answers.checker import shared_checker
print(shared_checker()._idle[0].process.pid)
"""


def test_a_script_without_a_guard_runs_once_and_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    said, pid = ended.stdout.split()
    assert said == "once"
    assert ended.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
