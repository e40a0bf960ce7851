"""Running programs: outcomes, feedback, limits, and that one run knows nothing of another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import threading
from typing import Any

import pytest
from traces import FINDS_TRACES, LEAVES_TRACES

from coda.errors import SandboxError, UsageError
from coda.program.tools import processes
from coda.program.tools.sandbox import IOCase, RunLimits, Sandbox, shared_sandbox

pytestmark = pytest.mark.sandbox

QUICK = RunLimits(timeout=1.0)


async def test_program_that_prints_is_ok(sandbox: Sandbox) -> None:
    execution = await sandbox.run("print(6 * 7)")
    assert (execution.outcome, execution.stdout, execution.stderr) == ("ok", "42\n", "")
    assert (execution.exit_status, execution.feedback) == (0, "")
    assert execution.isolation == sandbox.level
    assert not execution.truncated
    assert execution.peak_memory_mb is not None


async def test_program_reads_its_input(sandbox: Sandbox) -> None:
    program = "import sys\nprint(input(), len(sys.stdin.read()))"
    assert (await sandbox.run(program, stdin="ünï\nrest\n")).stdout == "ünï 5\n"


async def test_error_is_told_with_the_programs_own_lines(sandbox: Sandbox) -> None:
    program = "import json\ndef read(text):\n    return json.loads(text)\nread('{')\n"
    execution = await sandbox.run(program)
    assert (execution.outcome, execution.exit_status) == ("error", 1)
    assert execution.feedback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "program.py", line 4, in <module>',
        "    read('{')",
        '  File "program.py", line 3, in read',
        "    return json.loads(text)",
        "           ^^^^^^^^^^^^^^^^",
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ]


async def test_cause_of_an_error_is_told_too(sandbox: Sandbox) -> None:
    program = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('second') from error\n"
    feedback = (await sandbox.run(program)).feedback
    assert "ZeroDivisionError" in feedback
    assert feedback.endswith("ValueError: second")


async def test_long_error_keeps_its_beginning_and_end(sandbox: Sandbox) -> None:
    feedback = (await sandbox.run("raise ValueError('first' + 'x' * 9000 + 'last')")).feedback
    assert "[…]" in feedback
    assert feedback.endswith("last")
    assert len(feedback) < 2100


async def test_signal_is_told_by_name(sandbox: Sandbox) -> None:
    execution = await sandbox.run("import os\nos.abort()")
    assert (execution.outcome, execution.exit_status) == ("killed", -signal.SIGABRT)
    assert "SIGABRT" in execution.feedback


async def test_output_is_cut_and_marked(sandbox: Sandbox) -> None:
    execution = await sandbox.run("print('x' * 10_000_000)", limits=RunLimits(output_bytes=1000))
    assert (execution.outcome, execution.truncated) == ("output", True)
    assert execution.stdout.startswith("x" * 1000)
    assert execution.stdout.endswith("[cut after 1000 bytes]")
    assert "more than 1000 bytes" in execution.feedback


async def test_output_of_exactly_the_limit_is_whole(sandbox: Sandbox) -> None:
    execution = await sandbox.run("print('x' * 999)", limits=RunLimits(output_bytes=1000))
    assert (execution.outcome, len(execution.stdout)) == ("ok", 1000)


async def test_output_before_a_timeout_is_kept(sandbox: Sandbox) -> None:
    execution = await sandbox.run("print('early', flush=True)\nwhile True: pass", limits=QUICK)
    assert (execution.outcome, execution.stdout) == ("timeout", "early\n")
    assert "within 1 seconds" in execution.feedback


async def test_binary_output_becomes_valid_text(sandbox: Sandbox) -> None:
    execution = await sandbox.run(r"import os; os.write(1, b'a\xff\xfeb')")
    assert execution.stdout == "a��b"
    execution.stdout.encode()


async def test_peak_memory_counts_what_the_program_used(sandbox: Sandbox) -> None:
    execution = await sandbox.run("held = b'x' * 100_000_000")
    assert execution.peak_memory_mb is not None
    assert 90 < execution.peak_memory_mb < 130


async def test_memory_limit_is_what_the_program_may_use(sandbox: Sandbox) -> None:
    program = "held = bytearray(100_000_000)\nprint('fits')"
    assert (await sandbox.run(program, limits=RunLimits(memory_mb=128))).outcome == "ok"
    assert (await sandbox.run(program, limits=RunLimits(memory_mb=64))).outcome == "memory"


@pytest.mark.parametrize("name", ["numpy", "sympy", "scipy", "mpmath"])
async def test_library_is_there(sandbox: Sandbox, name: str) -> None:
    pytest.importorskip(name)
    assert (await sandbox.run(f"import {name}\nprint({name}.__name__)")).stdout == f"{name}\n"


async def test_random_numbers_differ_from_run_to_run(sandbox: Sandbox) -> None:
    program = "import random, numpy\nprint(random.random(), numpy.random.rand())"
    outputs = {(await sandbox.run(program)).stdout for _ in range(3)}
    assert len(outputs) == 3


async def test_sets_keep_their_order_from_run_to_run(sandbox: Sandbox) -> None:
    outputs = {(await sandbox.run("print({*'abcdefgh'})")).stdout for _ in range(3)}
    assert len(outputs) == 1


async def test_processes_of_a_program_work_together(sandbox: Sandbox) -> None:
    program = (
        "import multiprocessing\n"
        "def square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.Pool(2) as pool:\n        print(pool.map(square, range(4)))\n"
    )
    assert (await sandbox.run(program)).stdout == "[0, 1, 4, 9]\n"


async def test_asyncio_works(sandbox: Sandbox) -> None:
    program = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('done')\nasyncio.run(main())"
    assert (await sandbox.run(program)).stdout == "done\n"


async def test_program_finds_no_trace_of_another(sandbox: Sandbox) -> None:
    before, during = await asyncio.gather(sandbox.run(LEAVES_TRACES), sandbox.run(FINDS_TRACES))
    after = await sandbox.run(FINDS_TRACES)
    assert before.outcome == "ok"
    assert [during.stdout, after.stdout] == ["[]\n", "[]\n"]


async def test_program_cannot_reach_another_that_runs(sandbox: Sandbox) -> None:
    server = (
        "import socket\nlistener = socket.create_server(('127.0.0.1', 45678))\nlistener.settimeout(2)\n"
        "print('reached', listener.accept())"
    )
    client = (
        "import socket, time\n"
        "for _ in range(10):\n"
        "    try:\n        socket.create_connection(('127.0.0.1', 45678), timeout=1)\n        print('reached')\n"
        "    except OSError:\n        time.sleep(0.1)\n"
    )
    results = await asyncio.gather(sandbox.run(server), sandbox.run(client))
    assert not any("reached" in execution.stdout for execution in results)


async def test_no_more_programs_run_at_once_than_there_are_workers() -> None:
    sandbox = Sandbox(workers=2)
    if not sandbox.available:
        pytest.skip(sandbox.why)
    program = "import time\nbegan = time.time()\ntime.sleep(0.2)\nprint(began, time.time())"
    results = await asyncio.gather(*[sandbox.run(program) for _ in range(6)])
    sandbox.close()
    spans = [tuple(map(float, execution.stdout.split())) for execution in results]
    overlaps = [sum(a <= begin < b for a, b in spans) for begin, _ in spans]
    assert max(overlaps) <= 2


async def test_cancelled_run_ends_its_processes(sandbox: Sandbox) -> None:
    await asyncio.gather(*[sandbox.run("") for _ in range(4)])
    before = await settled_processes()
    task = asyncio.ensure_future(sandbox.run("import os, time\nos.fork()\nos.fork()\ntime.sleep(60)"))
    await until(lambda: len(processes.descendants(os.getpid())) >= before + 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await settled_processes() <= before
    assert (await sandbox.run("print(1)")).outcome == "ok"


async def test_template_that_dies_is_replaced() -> None:
    sandbox = Sandbox()
    if not sandbox.available:
        pytest.skip(sandbox.why)
    before = set(processes.children(os.getpid()))
    assert (await sandbox.run("print(1)")).outcome == "ok"
    for template in set(processes.children(os.getpid())) - before:
        pid = processes.descendants(template)[-1]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert (await sandbox.run("print(2)")).stdout == "2\n"
    sandbox.close()


async def test_machine_without_resources_is_a_sandbox_error(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pipe() -> tuple[int, int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr("coda.program.tools.pipes.os.pipe", no_pipe)
        with pytest.raises(SandboxError, match="Too many open files"):
            await sandbox.run("print(1)")
    assert (await sandbox.run("print(2)")).stdout == "2\n"


async def test_sandbox_serves_any_thread_and_loop(sandbox: Sandbox) -> None:
    outputs: list[str] = []

    def work() -> None:
        outputs.append(asyncio.run(sandbox.run("print('loop')")).stdout)
        outputs.append(sandbox.run_sync("print('no loop')").stdout)

    thread = threading.Thread(target=work)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert outputs == ["loop\n", "no loop\n"]


async def test_closed_sandbox_leaves_nothing_and_says_so() -> None:
    before = set(processes.children(os.getpid()))
    sandbox = Sandbox()
    if not sandbox.available:
        pytest.skip(sandbox.why)
    await sandbox.run("import sympy")
    sandbox.close()
    assert set(processes.children(os.getpid())) == before
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.run("print(1)")


def test_shared_sandbox_is_one() -> None:
    assert shared_sandbox() is shared_sandbox()
    assert shared_sandbox(unsafe=True) is not shared_sandbox()


@pytest.mark.parametrize("limits", [{"timeout": 0}, {"timeout": float("nan")}, {"memory_mb": -1}, {"processes": 0}])
def test_limits_are_numbers_above_zero(limits: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(limits))}.*above 0"):
        RunLimits(**limits)


async def test_unknown_language_is_named_with_the_known_ones(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match=r"'cobol'.*python, c, cpp"):
        await sandbox.run("", language="cobol")


async def test_io_tests_need_a_case(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match="at least one case"):
        await sandbox.run_io("print(1)", [])


DOUBLES = "print(2 * int(input()))"


async def test_io_cases_pass(sandbox: Sandbox) -> None:
    execution = await sandbox.run_io(DOUBLES, [IOCase("1\n", "2\n"), IOCase("4", "8")])
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("ok", 2, 2)


async def test_io_failure_shows_input_expected_and_got(sandbox: Sandbox) -> None:
    cases = [IOCase("1", "2"), IOCase("4", "9"), IOCase("5", "10")]
    execution = await sandbox.run_io(DOUBLES, cases)
    assert (execution.outcome, execution.tests_passed, execution.tests_total) == ("wrong", 1, 3)
    assert execution.feedback == "Test 2 of 3 failed on the input:\n4\nexpected:\n9\ngot:\n8"


async def test_io_error_shows_input_and_error(sandbox: Sandbox) -> None:
    execution = await sandbox.run_io(DOUBLES, [IOCase("x", "2")])
    assert (execution.outcome, execution.tests_passed) == ("error", 0)
    assert "on the input:\nx\n" in execution.feedback
    assert "ValueError" in execution.feedback


async def test_io_expected_output_may_exceed_the_output_limit(sandbox: Sandbox) -> None:
    case = IOCase("", "x" * 5000)
    assert (await sandbox.run_io("print('x' * 5000)", [case], limits=RunLimits(output_bytes=1000))).outcome == "ok"


async def test_expected_output_is_not_in_the_sandbox(sandbox: Sandbox) -> None:
    thief = "import gc\nprint(*[x for x in gc.get_objects() if isinstance(x, str) and 'hidden' + '-value' in x])"
    assert (await sandbox.run_io(thief, [IOCase("", "hidden-value")])).outcome == "wrong"


async def settled_processes() -> int:
    """How many processes there are below this one, once their number stays the same."""
    counts = [0, 1]
    while len(set(counts[-5:])) > 1:
        await asyncio.sleep(0.1)
        counts.append(len(processes.descendants(os.getpid())))
    return counts[-1]


async def until(condition: object, seconds: float = 10.0) -> None:
    """Wait for something to become true."""
    assert callable(condition)
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come true")
