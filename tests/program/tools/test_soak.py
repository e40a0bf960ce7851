"""Thousands of runs, a tenth of them hostile: nothing piles up."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import tempfile
from pathlib import Path

import hostile
import pytest

from coda.program.tools import processes
from coda.program.tools.sandbox import RunLimits, Sandbox

pytestmark = pytest.mark.sandbox

LONG = [
    pytest.mark.slow,
    pytest.mark.skipif("CODA_LONG_TESTS" not in os.environ, reason="takes a minute: set CODA_LONG_TESTS=1"),
]
TABLE = Path(__file__).parent / "hostile"
CONCURRENCY = 8


def mounts() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_of_templates() -> int:
    """KiB of all processes below this one."""
    total = 0
    for pid in processes.descendants(os.getpid()):
        status = Path(f"/proc/{pid}/status").read_text()
        total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0)
    return total


async def run_many(sandbox: Sandbox, runs: int) -> list[str]:
    """So many runs, eight at a time, every tenth hostile; what went wrong."""
    limits = RunLimits(timeout=1.0, memory_mb=128)
    programs = [row for row in hostile.table(TABLE) if row.limits.timeout > 2]
    chosen = random.Random(4)
    places = asyncio.Semaphore(CONCURRENCY)
    wrong: list[str] = []
    with hostile.bait() as values:

        async def one(number: int) -> None:
            async with places:
                if number % 10 == 0:
                    program = chosen.choice(programs)
                    execution = await sandbox.run(hostile.armed(program.code, values), limits=limits)
                    if "ESCAPED" in execution.stdout:
                        wrong.append(f"{program.name}: {execution}")
                elif (execution := await sandbox.run(f"print({number} + 1)")).stdout != f"{number + 1}\n":
                    wrong.append(f"{number}: {execution}")

        await asyncio.gather(*map(one, range(runs)))
    return wrong


@pytest.mark.parametrize("runs", [200, pytest.param(5000, marks=LONG)])
async def test_nothing_piles_up(runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sandbox = Sandbox(workers=CONCURRENCY)
    if not sandbox.available:
        pytest.skip(sandbox.why)
    before = (set(processes.children(os.getpid())), mounts())
    assert (await sandbox.run("import numpy")).outcome == "ok"
    assert await run_many(sandbox, 100) == []
    await asyncio.sleep(0.5)
    settled = (len(processes.descendants(os.getpid())), descriptors(), resident_of_templates())
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert await run_many(sandbox, runs) == []
    await asyncio.sleep(0.5)
    assert len(processes.descendants(os.getpid())) == settled[0]
    assert descriptors() <= settled[1]
    assert resident_of_templates() < settled[2] + 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < own + 30_000
    sandbox.close()
    assert (set(processes.children(os.getpid())), mounts()) == before
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a look, and short
