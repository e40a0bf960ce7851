"""The process that is started once, preloads libraries, and forks a job for each program.

It never runs a program itself, so every job starts from the same clean state. It ends when the host closes its end
of the control socket, or dies.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from coda.program.tools.guest import build, confine, judge, native, script, serve, syscalls, warmup

# Descriptors of a program, in the order in which the host sends them.
PAYLOAD, STDIN, STDOUT, STDERR, EXTRA = range(5)
_MOST_DESCRIPTORS = 16
_ROLES = {
    "build": build.run,
    "judge": judge.run,
    "native": native.run,
    "script": script.run,
    "serve": serve.run,
}


def main() -> None:
    """Serve the control socket named on the command line until it closes."""
    options = json.loads(sys.argv[1])
    control = socket.socket(fileno=options["control"])
    sys.path[:] = [*sys.path, *options["path"]]
    for name in options["preload"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    warmup.warm()
    if syscalls.supported():
        syscalls.build()  # and keep it for all jobs
    script.OWN_MODULES[:] = [name for name in sys.modules if name.split(".")[0] == "coda"]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    myself = os.pidfd_open(os.getpid())
    control.sendall(json.dumps(_abilities(myself, nested=options["nested"])).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        if not message:
            return
        with socket.socket(fileno=descriptors[0]) as link:
            if (confine.fork_apart(myself) if options["nested"] else os.fork()) == 0:
                control.close()
                _prepare(link, options)


def _abilities(myself: int, *, nested: bool) -> dict[str, bool]:
    """What works here, found out by doing it in a child."""
    return {
        "namespaces": nested and _child_can(lambda: confine.fork_apart(myself), lambda: confine.new_space(1 << 20)),
        "filter": syscalls.supported() and _child_can(os.fork, _try_filter),
    }


def _try_filter() -> None:
    confine.drop_privileges()
    if not confine.shut(True):
        raise OSError


def _child_can(fork: Callable[[], int], action: Callable[[], None]) -> bool:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        child = fork()
        if child == 0:
            _exit_after(action)
        _, status = os.waitpid(child, 0)
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return status == 0


def _exit_after(action: Callable[[], None]) -> None:
    try:
        action()
    except OSError:
        os._exit(1)
    os._exit(0)


def _prepare(link: socket.socket, options: dict[str, Any]) -> None:
    """Prepare a place for one program, in a child of the template. Never returns."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if options["nested"]:
            confine.new_space(options["temporary_bytes"])
            confine.drop_privileges()
        confine.warden(link, _program)
    except BaseException as error:  # Whatever it is, no copy of the template may go on.
        with contextlib.suppress(OSError):
            link.sendall(f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(0)


def _program(link: socket.socket) -> None:
    """Wait for a program, and become it: the last trusted lines."""
    message, descriptors, _, _ = socket.recv_fds(link, 16, _MOST_DESCRIPTORS)
    link.close()
    if not message:
        os._exit(0)
    job = json.loads(_read_all(descriptors[PAYLOAD]))
    extra = descriptors[EXTRA:]
    confine.settle(descriptors[STDIN:EXTRA], set(extra), job["environment"])
    try:
        confine.limit(job["limits"])
        if confine.shut(job["filter"]) != job["filter"]:
            raise OSError("the system-call filter cannot be installed")
        _ROLES[job["role"]](job, extra)
    except BaseException as error:
        os.write(2, f"sandbox: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(126)


def _read_all(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    data = b""
    while len(data) < size and (piece := os.pread(fd, size - len(data), len(data))):
        data += piece
    return data
