"""One program in one template: started, watched, stopped, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coda.errors import UsageError
from coda.program.tools import processes
from coda.program.tools.cgroups import Group
from coda.program.tools.pipes import Tap, sealed
from coda.program.tools.space import Space
from coda.program.tools.template import ENVIRONMENT, TEMPORARY_BYTES, Template

Reason = Literal["timeout", "output", "memory"]
"""Why the host stopped a program."""

_WATCH_SECONDS = 0.1


@dataclass(frozen=True)
class RunLimits:
    """What one run of a program may use.

    Attributes:
        timeout: Seconds by the clock; for tests, all of them together.
        memory_mb: Memory, in MiB, beyond what the interpreter with its libraries takes.
        output_bytes: Bytes on stdout, and as many on stderr.
        processes: Processes and threads at once.

    Raises:
        UsageError: One of them is no number above 0.
    """

    timeout: float = 10.0
    memory_mb: int = 512
    output_bytes: int = 65536
    processes: int = 32

    def __post_init__(self) -> None:
        for name in ("timeout", "memory_mb", "output_bytes", "processes"):
            if not 0 < getattr(self, name) < math.inf:
                raise UsageError(f"RunLimits: {name} is {getattr(self, name)}; it must be a number above 0.")


@dataclass(frozen=True)
class Ended:
    """How a job ended.

    Attributes:
        status: The program's wait status; ``None`` where it did not live to be waited for.
        reason: Why it was stopped, where it was.
        stdout: What it wrote there, at most as much as it may.
        stderr: The same for stderr.
        seconds: How long it ran.
        peak_mb: The most memory that its largest process used, where it is known.
    """

    status: int | None
    reason: Reason | None
    stdout: bytes
    stderr: bytes
    seconds: float
    peak_mb: float | None


class Job:
    """A program to be run in a template.

    Args:
        template: Where it runs.
        payload: Its role and what that role needs.
        limits: What it may use.
        stdin: What it reads.
        extra: Descriptors for its role; the job has copies of its own, which it closes when the program has them.
    """

    def __init__(
        self,
        template: Template,
        payload: Mapping[str, Any],
        limits: RunLimits,
        *,
        stdin: bytes = b"",
        extra: Sequence[int] = (),
    ) -> None:
        self._template = template
        self._payload = payload
        self._limits = limits
        self._stdin = stdin
        self._extra = [os.dup(fd) for fd in extra]
        self._reason: Reason | None = None
        self._space: Space | None = None
        self._group: Group | None = None

    async def run(self) -> Ended:
        """Run it to its end, whatever that is. When this returns or raises, no process of the job is left.

        Raises:
            SandboxError: It could not be started.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(self.discard)
            self._space = space = await self._template.take()
            stack.callback(space.close)
            try:
                self._limit_group(stack, space)
                out, err = self._tap(stack), self._tap(stack)
                self._begin(stack, space, out, err)
                seconds = await self._watched(space)
            finally:
                space.kill()
                await space.gone()
            out.drain()
            err.drain()
            return self._ended(space, out.data, err.data, seconds)

    def discard(self) -> None:
        """Close the descriptors that it has copied."""
        while self._extra:
            os.close(self._extra.pop())

    def stop(self, reason: Reason | None) -> None:
        """Kill it, with all that it started; the first reason counts, ``None`` is no reproach."""
        self._reason = self._reason or reason
        if self._space is not None:
            self._space.kill()

    def _limit_group(self, stack: contextlib.ExitStack, space: Space) -> None:
        """Put it into a control group of its own, where that can be."""
        if self._template.delegation is not None:
            limits = {"memory_bytes": self._limits.memory_mb << 20, "processes": self._limits.processes + 1}
            self._group = stack.enter_context(Group(self._template.delegation, **limits))
            for pid in (space.pid, *processes.children(space.pid)):  # The program's process waits, and has no others.
                self._group.add(pid)

    def _tap(self, stack: contextlib.ExitStack) -> Tap:
        tap = Tap(self._limits.output_bytes, lambda: self.stop("output"))
        stack.callback(tap.close)
        return tap

    def _begin(self, stack: contextlib.ExitStack, space: Space, out: Tap, err: Tap) -> None:
        """Hand over the program and its descriptors, and close what was only for it."""
        payload = {"environment": self._environment(stack), **self._common(space), **self._payload}
        with contextlib.ExitStack() as passing:
            files = [sealed(content) for content in (json.dumps(payload).encode(), self._stdin)]
            for fd in files:
                passing.callback(os.close, fd)
            space.begin([*files, out.inner, err.inner, *self._extra])
        out.close_inner()
        err.close_inner()
        self.discard()

    def _environment(self, stack: contextlib.ExitStack) -> dict[str, str]:
        """The program's environment; without a file system of its own it gets a new folder to work in."""
        if self._template.confined:
            return ENVIRONMENT
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="coda-", ignore_cleanup_errors=True))
        return {**ENVIRONMENT, "HOME": folder, "TMPDIR": folder}

    def _common(self, space: Space) -> dict[str, Any]:
        """What every program needs."""
        return {
            "filter": self._template.filtered,
            "limits": {
                "address_space": processes.address_space(space.pid) + (self._limits.memory_mb << 20),
                "cpu_seconds": int(self._limits.timeout) + 2,
                "processes": self._limits.processes + 1,
                "file_bytes": TEMPORARY_BYTES,
                "files": 256,
            },
        }

    async def _watched(self, space: Space) -> float:
        """Wait for the end, of itself or because it used too much; the seconds that it took."""
        began = time.monotonic()
        timer = asyncio.get_running_loop().call_later(self._limits.timeout, self.stop, "timeout")
        watcher = asyncio.ensure_future(self._watch_memory(space))
        try:
            await space.over()
        finally:
            timer.cancel()
            watcher.cancel()
        return time.monotonic() - began

    async def _watch_memory(self, space: Space) -> None:
        """Stop a job whose processes together use more memory than one alone may."""
        allowed = (self._limits.memory_mb << 20) + processes.address_space(space.pid)
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if len(processes.descendants(space.pid)) > 1 and processes.memory_of_tree(space.pid) > allowed:
                self.stop("memory")

    def _ended(self, space: Space, stdout: bytes, stderr: bytes, seconds: float) -> Ended:
        report = space.report()
        peak = report.get("peak_kb", 0) / 1024 if report else None
        if self._group is not None:
            self._reason = self._reason or ("memory" if self._group.out_of_memory else None)
            peak = peak if self._group.peak_bytes is None else self._group.peak_bytes / (1 << 20)
        return Ended(report.get("status"), self._reason, stdout, stderr, seconds, peak)
