"""A place prepared for one program: a process in namespaces of its own, waiting to be told what to run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import struct
from collections.abc import Sequence
from typing import Any

from coda.errors import SandboxError
from coda.program.tools import processes
from coda.program.tools.guest.confine import READY

_PREPARE_SECONDS = 30.0
_CREDENTIALS = struct.Struct("3i")


class TemplateGone(SandboxError):
    """The template has ended; another one can be started."""

    def __init__(self) -> None:
        super().__init__("The sandbox's template has ended.")


class Space:
    """The host's end of it.

    Args:
        control: The template's control socket, over which it is asked for.
        alone: Whether nothing but its own process tree holds its program: then that tree is what is to be killed.

    Attributes:
        pid: The process that watches over the program; known when it is ready.

    Raises:
        TemplateGone: There is nobody to prepare it.
    """

    def __init__(self, control: socket.socket, *, alone: bool) -> None:
        self.pid = -1
        self._alone = alone
        self._stack = contextlib.ExitStack()
        self._link, inner = socket.socketpair()
        self._stack.enter_context(self._link)
        self._link.setblocking(False)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with inner:
            try:
                socket.send_fds(control, [b"space"], [inner.fileno()])
            except OSError as error:
                self.close()
                raise TemplateGone from error

    async def ready(self) -> None:
        """Wait until it is prepared.

        Raises:
            TemplateGone: The template ended instead.
            SandboxError: It could not be prepared.
        """
        if self.pid >= 0:
            return
        loop = asyncio.get_running_loop()
        sign: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._link, _settle, sign)
        try:
            await asyncio.wait_for(sign, _PREPARE_SECONDS)
        except TimeoutError as error:
            raise SandboxError("A program could not be started: the sandbox does not answer.") from error
        finally:
            loop.remove_reader(self._link)
        data, ancillary, _, _ = self._link.recvmsg(512, socket.CMSG_SPACE(_CREDENTIALS.size))
        if data and data != READY:
            raise SandboxError(f"A program could not be started: {data.decode(errors='replace')}.")
        if not data or not ancillary:
            raise TemplateGone
        self._watch(_CREDENTIALS.unpack(ancillary[0][2][: _CREDENTIALS.size])[0])

    def _watch(self, pid: int) -> None:
        """Be told when the process ends."""
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError as error:
            raise TemplateGone from error
        self.pid = pid
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pidfd, _settle, self._over)
        self._stack.callback(os.close, self._pidfd)
        self._stack.callback(loop.remove_reader, self._pidfd)

    @property
    def ended(self) -> bool:
        """Whether the process is gone, and with it all that it started."""
        return self._over.done()

    def begin(self, descriptors: Sequence[int]) -> None:
        """Let the program begin.

        Raises:
            TemplateGone: The process is gone.
        """
        try:
            socket.send_fds(self._link, [b"begin"], list(descriptors))
        except OSError as error:
            raise TemplateGone from error

    def kill(self) -> None:
        """Kill the process, and so everything in its namespaces."""
        if self.pid < 0 or self.ended:
            return
        if self._alone:
            processes.kill_tree(self.pid)
        else:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def over(self) -> None:
        """Wait until the process has ended; by then all others in its namespaces have."""
        await asyncio.shield(self._over)

    async def gone(self) -> None:
        """`over`, come what may: a cancelled caller has to wait too."""
        while not self.ended:
            with contextlib.suppress(asyncio.CancelledError):
                await self.over()

    def report(self) -> dict[str, Any]:
        """What the process said about the program's end; empty where it did not live to say it."""
        with contextlib.suppress(BlockingIOError, ValueError, ConnectionError):
            report: dict[str, Any] = json.loads(self._link.recv(4096) or b"{}")
            return report
        return {}

    def close(self) -> None:
        """Let go of it. A process that still waits for its program ends."""
        self._stack.close()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
