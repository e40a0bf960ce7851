"""The ladder of isolation: what happens where layers are missing, and how it is told."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from traces import FINDS_TRACES, LEAVES_TRACES

from coda.program.tools import isolation, processes
from coda.program.tools.isolation import Ground
from coda.program.tools.sandbox import IOCase, RunLimits, Sandbox

pytestmark = pytest.mark.sandbox

QUICK = RunLimits(timeout=1.0)


@pytest.fixture
def ladder() -> Ground:
    ground = isolation.survey()
    if ground.level == "off":
        pytest.skip(ground.why)
    return ground


def standing_on(ground: Ground, *, unsafe: bool = False) -> Sandbox:
    sandbox = Sandbox(unsafe=unsafe)
    sandbox.ground = ground
    return sandbox


@pytest.mark.parametrize("filtered", [True, False])
async def test_without_nested_namespaces_programs_run_cold(ladder: Ground, filtered: bool) -> None:
    sandbox = standing_on(replace(ladder, level="reduced", nested=False, filtered=filtered))
    assert (await sandbox.run("import os\nprint(os.path.exists('/etc'))")).stdout == "False\n"
    assert (await sandbox.run_tests("def f(): return 1", ["assert f() == 1"])).outcome == "ok"
    assert (await sandbox.run("import os, time\nos.fork()\ntime.sleep(60)", limits=QUICK)).outcome == "timeout"
    during, after = await asyncio.gather(sandbox.run(LEAVES_TRACES), sandbox.run(FINDS_TRACES))
    assert (during.outcome, after.stdout) == ("ok", "[]\n")
    sandbox.close()


def test_each_program_gets_a_control_group_where_they_are_delegated(ladder: Ground, tmp_path: Path) -> None:
    sandbox = standing_on(replace(ladder, delegation=tmp_path))
    limits = RunLimits(memory_mb=100, processes=5)
    assert sandbox.run_sync("print(1)", limits=limits).outcome == "ok"
    assert sandbox.run_sync("print(2)", limits=limits).outcome == "ok"
    sandbox.close()
    groups = sorted(tmp_path.iterdir())
    assert len(groups) == 2
    for group in groups:
        content = {file.name: file.read_text() for file in group.iterdir()}
        assert int(content.pop("cgroup.procs")) > 0
        assert content == {
            "memory.max": str(100 << 20),
            "memory.swap.max": "0",
            "pids.max": "6",
            "cgroup.kill": "1",
        }


async def test_without_a_sandbox_nothing_runs_and_the_reason_is_told() -> None:
    sandbox = standing_on(Ground("off", "Bubblewrap is not installed: install it."))
    for execution in (
        await sandbox.run("print(1)"),
        await sandbox.run_tests("def f(): return 1", ["assert f() == 1"]),
        await sandbox.run_io("print(1)", [IOCase("", "1")]),
        await sandbox.run("int main(){}", language="c"),
    ):
        assert (execution.outcome, execution.stdout, execution.isolation) == ("no-sandbox", "", "off")
        assert "install it" in execution.feedback
    assert not sandbox.available


async def test_unsafe_runs_without_a_sandbox_and_every_result_says_so() -> None:
    sandbox = standing_on(isolation.without_isolation(), unsafe=True)
    execution = await sandbox.run("import os\nprint(sorted(os.environ), os.getcwd() != '/', os.path.exists('/proc'))")
    assert (execution.outcome, execution.isolation) == ("ok", "unsafe")
    assert "True True" in execution.stdout
    assert "PYTEST_CURRENT_TEST" not in execution.stdout
    assert (await sandbox.run_tests("def f(): return 1", ["assert f() == 1"])).outcome == "ok"
    sandbox.close()


async def test_unsafe_timeout_ends_daemons_too() -> None:
    sandbox = standing_on(isolation.without_isolation(), unsafe=True)
    program = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\ntime.sleep(60)"
    before = set(processes.descendants(os.getpid()))
    assert (await sandbox.run(program, limits=QUICK)).outcome == "timeout"
    assert not set(processes.descendants(os.getpid())) - before
    sandbox.close()


def test_unsafe_uses_the_sandbox_where_there_is_one(ladder: Ground) -> None:
    assert Sandbox(unsafe=True).level == ladder.level


def test_missing_bubblewrap_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "BUBBLEWRAP", "no-such-program")
    isolation.survey.cache_clear()
    ground = isolation.survey()
    isolation.survey.cache_clear()
    assert (ground.level, ground.bwrap) == ("off", None)
    assert "install the package `bubblewrap`" in ground.why


@pytest.fixture
def broken_bubblewrap() -> Iterator[Path]:
    """One that any user can execute, and that complains."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        broken = Path(folder) / "bwrap"
        broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        broken.chmod(0o755)
        yield broken


def test_bubblewrap_that_fails_is_told_with_its_complaint(
    monkeypatch: pytest.MonkeyPatch, broken_bubblewrap: Path
) -> None:
    monkeypatch.setattr(isolation, "BUBBLEWRAP", str(broken_bubblewrap))
    isolation.survey.cache_clear()
    ground = isolation.survey()
    isolation.survey.cache_clear()
    assert ground.level == "off"
    assert "No permissions to create new namespace" in ground.why
    assert "unprivileged user namespaces" in ground.why


def test_other_systems_are_sent_to_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    isolation.survey.cache_clear()
    ground = isolation.survey()
    isolation.survey.cache_clear()
    assert ground.level == "off"
    assert "container" in ground.why
