"""Worker processes that compare expressions, started when first needed and bounded to the cores."""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import os
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from coda.errors import CodaError
from coda.program.concurrency import on_background_loop, run_sync

SECONDS = 2.0
"""Wall-clock limit of one comparison; one that takes longer counts as "not the same"."""
MEMORY_MB = 1024
REMEMBERED = 8192
"""Verdicts that are kept: the vote is taken again after every attempt."""

_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH", "TMPDIR")
_PROGRAM = Path(__file__).with_name("worker.py")

Question = tuple[str, str, bool]


@dataclass(frozen=True)
class Worker:
    """One process, see worker.py."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @classmethod
    async def start(cls, *limits: str) -> Worker:
        """Start a process; it sees none of the environment that it does not need."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(_PROGRAM), *limits,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}, start_new_session=True,
        )  # fmt: skip
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process that was started with pipes has none")
        return cls(process, process.stdin, process.stdout)

    async def ask(self, line: str) -> str:
        """Send a line and return the reply; empty where the process ended over it."""
        try:
            self.stdin.write(line.encode() + b"\n")
            return await self.reply()
        except (BrokenPipeError, ConnectionResetError):
            return ""

    async def reply(self) -> str:
        """The next line, empty where there is none."""
        return (await self.stdout.readline()).decode().rstrip()


class Checker:
    """Asks math-verify in processes that can be killed; from any thread and any event loop.

    Args:
        workers: Processes at most; by default the number of cores.
        seconds: Wall-clock limit of one comparison.
        memory_mb: Address space of one process.
    """

    def __init__(self, workers: int | None = None, *, seconds: float = SECONDS, memory_mb: int = MEMORY_MB) -> None:
        self._limits = (str(seconds), str(memory_mb))
        self._slots = asyncio.Semaphore(workers or len(os.sched_getaffinity(0)))
        self._idle: list[Worker] = []
        self._verdicts: OrderedDict[Question, bool] = OrderedDict()
        self.started = 0
        """Processes started so far."""

    async def same(self, reference: str, answer: str, *, mutual: bool = False) -> bool:
        """Whether an answer means the same as the reference; ``mutual``: also the other way round.

        A comparison that hangs, crashes or needs too much memory costs its limit, and is "not the same".

        Raises:
            CodaError: The worker processes cannot be started.
        """
        question = (reference, answer, mutual)
        if question in self._verdicts:
            self._verdicts.move_to_end(question)
            return self._verdicts[question]
        verdict = await on_background_loop(self._ask(question))
        self._verdicts[question] = verdict
        if len(self._verdicts) > REMEMBERED:
            self._verdicts.popitem(last=False)
        return verdict

    async def aclose(self) -> None:
        """End the processes; they start again when they are needed."""
        await on_background_loop(self._close())

    def close(self) -> None:
        """`aclose`, for callers that are not async."""
        if self._idle:
            run_sync(self._close())

    async def _ask(self, question: Question) -> bool:
        async with self._slots:
            worker = self._idle.pop() if self._idle else await self._start()
            try:
                reply = await worker.ask(json.dumps(question))
            except BaseException:
                worker.process.kill()
                raise
            if reply:
                self._idle.append(worker)
            else:
                await worker.process.wait()
            return reply == "1"

    async def _start(self) -> Worker:
        self.started += 1
        worker = await Worker.start(*self._limits)
        try:
            ready = await worker.reply()
        except BaseException:
            worker.process.kill()
            raise
        if ready != "ready":
            status = await worker.process.wait()
            raise CodaError(
                f"Answers cannot be compared: the worker process ended with status {status} while it was starting. "
                f"See why with: {sys.executable} -P {_PROGRAM} {' '.join(self._limits)}"
            )
        return worker

    async def _close(self) -> None:
        while self._idle:
            worker = self._idle.pop()
            worker.process.kill()
            await worker.process.wait()


@functools.cache
def shared_checker() -> Checker:
    """The process's checker; it is closed when the process ends."""
    checker = Checker()
    atexit.register(checker.close)
    return checker
