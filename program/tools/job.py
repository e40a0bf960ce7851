"""One program in one template: started, watched, stopped, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coda.errors import SandboxError
from coda.program.tools import processes
from coda.program.tools.cgroups import Group
from coda.program.tools.pipes import Tap, sealed
from coda.program.tools.template import ENVIRONMENT, TEMPORARY_BYTES, Template

Reason = Literal["timeout", "output", "memory"]
"""Why the host stopped a program."""

_START_SECONDS = 20.0
_WATCH_SECONDS = 0.1
_CREDENTIALS = struct.Struct("3i")
_PIECE = 1 << 16


@dataclass(frozen=True)
class RunLimits:
    """What one run of a program may use.

    Attributes:
        timeout: Seconds by the clock; for tests, all of them together.
        memory_mb: Memory, in MiB, beyond what the interpreter with its libraries takes.
        output_bytes: Bytes on stdout, and as many on stderr.
        processes: Processes and threads at once.
    """

    timeout: float = 10.0
    memory_mb: int = 512
    output_bytes: int = 65536
    processes: int = 32


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


class TemplateGone(SandboxError):
    """The template ended before the job began; another one can be started."""


class Job:
    """A job about to run.

    Args:
        template: Where it runs.
        payload: Its role and what that role needs.
        limits: What it may use.
        stdin: What it reads.
        extra: Descriptors for its role.
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
        self._limits = limits
        self._reason: Reason | None = None
        self._pid = self._pidfd = -1
        self._group: Group | None = None
        self._over = asyncio.get_running_loop().create_future()
        self._stack = contextlib.ExitStack()
        try:
            self._start(payload, stdin, extra)
        except BaseException:
            self.discard()
            raise

    def _start(self, payload: Mapping[str, Any], stdin: bytes, extra: Sequence[int]) -> None:
        self._report, inner = socket.socketpair()
        self._stack.enter_context(self._report)
        self._report.setblocking(False)
        self._report.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._out = self._tap()
        self._err = self._tap()
        payload = {"environment": self._environment(), **_common(self._limits, self._template), **payload}
        data = json.dumps(payload).encode()
        with inner, contextlib.ExitStack() as stack:
            files = [sealed(content) for content in (data, stdin)]
            for fd in files:
                stack.callback(os.close, fd)
            descriptors = [files[0], inner.fileno(), files[1], self._out.inner, self._err.inner, *extra]
            try:
                self._template.send(descriptors)
            except OSError as error:
                raise TemplateGone("The sandbox's template has ended.") from error
        self._out.close_inner()
        self._err.close_inner()

    def _environment(self) -> dict[str, str]:
        """The program's environment; without a file system of its own it gets a new folder to work in."""
        if self._template.confined:
            return ENVIRONMENT
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="coda-", ignore_cleanup_errors=True))
        return {**ENVIRONMENT, "HOME": folder, "TMPDIR": folder}

    def _tap(self) -> Tap:
        tap = Tap(self._limits.output_bytes, lambda: self.stop("output"))
        self._stack.callback(tap.close)
        return tap

    async def run(self) -> Ended:
        """Run it to its end, whatever that is. When this returns or raises, no process of the job is left.

        Raises:
            SandboxError: It could not be started.
        """
        loop = asyncio.get_running_loop()
        with self._stack:
            await self._ready()
            began = time.monotonic()
            timer = loop.call_later(self._limits.timeout, self.stop, "timeout")
            watcher = asyncio.ensure_future(self._watch())
            self._report.send(b"%d" % processes.address_space(self._pid))
            try:
                await asyncio.shield(self._over)
            finally:
                timer.cancel()
                watcher.cancel()
                self._kill()
                await self._gone()
            seconds = time.monotonic() - began
            self._out.drain()
            self._err.drain()
            return self._ended(seconds)

    def discard(self) -> None:
        """Close all that a job holds; one that was not run never will be."""
        self._stack.close()

    def stop(self, reason: Reason | None) -> None:
        """Kill it, with all that it started; the first reason counts, ``None`` is no reproach."""
        self._reason = self._reason or reason
        self._kill()

    async def _ready(self) -> None:
        """Wait for the job's first sign of life, and find out which process it is."""
        loop = asyncio.get_running_loop()
        sign = loop.create_future()
        loop.add_reader(self._report, _settle, sign)
        try:
            await asyncio.wait_for(sign, _START_SECONDS)
        except TimeoutError as error:
            raise SandboxError(
                "A program could not be started in the sandbox: its template does not answer."
            ) from error
        finally:
            loop.remove_reader(self._report)
        data, ancillary, _, _ = self._report.recvmsg(64, socket.CMSG_SPACE(_CREDENTIALS.size))
        if not data or not ancillary:
            self._err.drain()
            why = self._err.data.decode(errors="replace").strip()
            if not why:
                raise TemplateGone("The sandbox's template has ended.")
            raise SandboxError(f"A program could not be started: {why}.")
        pid = _CREDENTIALS.unpack(ancillary[0][2][: _CREDENTIALS.size])[0]
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError as error:
            raise TemplateGone("The sandbox's template has ended.") from error
        self._pid = pid
        self._stack.callback(os.close, self._pidfd)
        loop.add_reader(self._pidfd, _settle, self._over)
        self._stack.callback(loop.remove_reader, self._pidfd)
        if self._template.delegation is not None:
            limits = {"memory_bytes": self._limits.memory_mb << 20, "processes": self._limits.processes + 1}
            self._group = self._stack.enter_context(Group(self._template.delegation, **limits))
            self._group.add(self._pid)

    def _kill(self) -> None:
        if self._pid < 0:
            return
        if self._template.nested:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        else:
            processes.kill_tree(self._pid)

    async def _gone(self) -> None:
        """Wait until the first process of the job has ended; by then all others have."""
        while not self._over.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._over)

    async def _watch(self) -> None:
        """Stop a job whose processes together use more memory than one alone may."""
        allowed = (self._limits.memory_mb << 20) + processes.address_space(self._pid)
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if len(processes.descendants(self._pid)) > 1 and processes.memory_of_tree(self._pid) > allowed:
                self.stop("memory")

    def _ended(self, seconds: float) -> Ended:
        status = peak = None
        with contextlib.suppress(BlockingIOError, ValueError, ConnectionError):
            report = json.loads(self._report.recv(4096) or b"{}")
            status, peak = report.get("status"), report.get("peak_kb", 0) / 1024
        if self._group is not None:
            self._reason = self._reason or ("memory" if self._group.out_of_memory else None)
            peak = peak if self._group.peak_bytes is None else self._group.peak_bytes / (1 << 20)
        return Ended(status, self._reason, self._out.data, self._err.data, seconds, peak)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _common(limits: RunLimits, template: Template) -> dict[str, Any]:
    """What every job needs."""
    return {
        "private": template.nested,
        "filter": template.filtered,
        "temporary_bytes": TEMPORARY_BYTES,
        "limits": {
            "memory_bytes": limits.memory_mb << 20,
            "cpu_seconds": int(limits.timeout) + 2,
            "processes": limits.processes + 1,
            "file_bytes": TEMPORARY_BYTES,
            "files": 256,
        },
    }
