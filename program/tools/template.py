"""The host's side of a template: the process inside the sandbox that forks a job for each program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from coda.errors import SandboxError
from coda.program.tools import processes
from coda.program.tools.root import Root
from coda.program.tools.space import Space, TemplateGone

UNPRIVILEGED = 65534
_CLOSE_SECONDS = 5.0
SPARES = 2
"""Places kept prepared: a program and its tests need two."""

START_SECONDS = 60.0
"""How long a template may take to start and to preload its libraries."""

_ISOLATION = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--uid", str(UNPRIVILEGED), "--gid", str(UNPRIVILEGED)),
)
ENVIRONMENT = {
    "HOME": "/tmp/work",  # noqa: S108 - inside
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/bin:/bin",
    "PYTHONHASHSEED": "0",
    "TMPDIR": "/tmp",  # noqa: S108 - inside
}
"""All that a program finds in its environment. One thread per process, and the same set order in every run."""

TEMPORARY_BYTES = 64 << 20


class NotStarted(SandboxError):
    """The sandbox cannot be started; ``complaint`` is what bubblewrap or the template said last."""

    def __init__(self, complaint: str) -> None:
        super().__init__(f"The sandbox cannot be started: {complaint}. `coda doctor` says what is missing.")
        self.complaint = complaint


class Template:
    """A running template.

    Args:
        bwrap: Path of bubblewrap; ``None`` starts it without any isolation.
        root: The file system inside.
        preload: Modules to import before the first job.
        nested: Whether jobs may get namespaces of their own. Without them a template serves one job only.

    Attributes:
        confined: Whether there is any isolation.
        filtered: Whether jobs get the system-call filter.
        delegation: The control group in which each job gets one of its own, where there is one.
    """

    def __init__(self, bwrap: str | None, root: Root, preload: Sequence[str] = (), *, nested: bool = True) -> None:
        self.confined = bwrap is not None
        self.nested = nested and self.confined
        self.filtered = False
        self.delegation: Path | None = None
        self._spares: deque[Space] = deque()
        self.control, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        options = {
            "control": inner.fileno(),
            "preload": list(preload),
            "nested": self.nested,
            "temporary_bytes": TEMPORARY_BYTES,
            "path": ["/packages"] if bwrap else sys.path[1:],
        }
        with inner:
            if bwrap is None:
                command = [sys.executable, *root.command[1:-1], _unconfined_start(), json.dumps(options)]
            else:
                command = _bubblewrap(bwrap, root, json.dumps(options), nested=self.nested)
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[inner.fileno()],
                env=ENVIRONMENT if bwrap is None else {},
                start_new_session=True,
            )

    def greeting(self, message: bytes) -> dict[str, bool]:
        """Read the template's first message: what works inside.

        Raises:
            NotStarted: It ended instead.
        """
        if message:
            abilities: dict[str, bool] = json.loads(message)
            self.filtered = abilities["filter"]
            return abilities
        self.process.kill()
        _, complaint = self.process.communicate()
        line = (complaint.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]
        raise NotStarted(line)

    async def take(self) -> Space:
        """A place for one program, which the caller closes; with luck one that was prepared before.

        Raises:
            TemplateGone: The template has ended.
            SandboxError: It could not be prepared.
        """
        space = self._spares.popleft() if self._spares else self._prepare()
        try:
            await space.ready()
            if space.ended:
                raise TemplateGone
        except BaseException:
            space.close()
            raise
        return space

    def replenish(self) -> None:
        """Have places prepared for the programs to come; a template that has ended is found out by the next."""
        with contextlib.suppress(TemplateGone):
            while self.nested and len(self._spares) < SPARES:
                self._spares.append(self._prepare())

    def _prepare(self) -> Space:
        return Space(self.control, alone=not self.nested)

    def close(self) -> None:
        """End the template and all its jobs, and wait until they are gone."""
        self._kill()
        try:
            self.process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()

    async def aclose(self) -> None:
        """`close` for event loops: waits without blocking."""
        if self.process.poll() is not None:
            self.close()
            return
        gone = asyncio.get_running_loop().create_future()
        pidfd = os.pidfd_open(self.process.pid)  # It has not been waited for, so the number is still its own.
        self._kill()
        asyncio.get_running_loop().add_reader(pidfd, lambda: None if gone.done() else gone.set_result(None))
        try:
            await asyncio.wait([gone], timeout=_CLOSE_SECONDS)
        finally:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)
            self.close()

    def _kill(self) -> None:
        """Kill what bubblewrap started, so that it can reap it and end by itself; killed itself, it could not."""
        self.control.close()
        while self._spares:
            self._spares.pop().close()
        below = processes.descendants(self.process.pid)
        for pid in below[:1] if self.confined else below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not below or not self.confined:
            self.process.kill()


def _bubblewrap(bwrap: str, root: Root, options: str, *, nested: bool) -> list[str]:
    as_root = os.geteuid() == 0
    command = [bwrap, *_ISOLATION]
    if nested:
        command += ["--cap-add", "CAP_SYS_ADMIN", "--dir", "/tmp"]  # noqa: S108 - inside
    else:
        command += ["--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - inside
    for name, value in ENVIRONMENT.items():
        command += ["--setenv", name, value]
    command += ["--setenv", "PYTHONHOME", "/python"]
    for number, (source, place) in enumerate(root.binds):
        command += ["--ro-bind", f"{{{number}}}" if as_root else source, place]
    command += [*root.options, "--remount-ro", "/", "--chdir", "/", "--", *root.command, options]
    if not as_root:
        return command
    sources = json.dumps([source for source, _ in root.binds])
    starter = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py"))]
    return [*starter, str(UNPRIVILEGED), sources, *command]


def _unconfined_start() -> str:
    """Code that starts the template from this installation."""
    folder = str(Path(__file__).parent / "guest")
    return (
        "import importlib.util, sys, types\n"
        f"for name in ('coda', 'coda.program', 'coda.program.tools', 'coda.program.tools.guest'):\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        f"    sys.modules[name].__path__ = [{folder!r}] if name.endswith('guest') else []\n"
        "from coda.program.tools.guest.template import main; main()"
    )
