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
from typing import Any

from coda.program.tools.guest import build, confine, judge, native, script, serve, syscalls

# Descriptors of a job, in the order in which the host sends them.
PAYLOAD, REPORT, STDIN, STDOUT, STDERR, EXTRA = range(6)
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    control.sendall(json.dumps(_abilities(options["nested"])).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 16, _MOST_DESCRIPTORS)
        if not message:
            return
        if os.fork() == 0:
            _job(control, descriptors, options["nested"])
        for fd in descriptors:
            os.close(fd)


def _abilities(nested: bool) -> dict[str, bool]:
    """What works here, found out by doing it in a child."""
    return {
        "namespaces": nested and _child_can(lambda: confine.new_space(1 << 20)),
        "filter": syscalls.supported() and _child_can(_try_filter),
    }


def _try_filter() -> None:
    confine.drop_privileges()
    if not confine.shut(True):
        raise OSError


def _child_can(action: Any) -> bool:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return status == 0


def _job(control: socket.socket, descriptors: list[int], nested: bool) -> None:
    """Prepare one job, in a child of the template. Never returns."""
    try:
        control.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        job = json.loads(_read_all(descriptors[PAYLOAD]))
        if nested:
            confine.new_space(job["temporary_bytes"])
        if os.fork() == 0:
            if job["private"]:
                confine.drop_privileges()
            confine.warden(descriptors[REPORT], lambda base: _program(job, descriptors, base))
    except BaseException as error:  # whatever it is, no copy of the template may go on
        with contextlib.suppress(OSError):
            os.write(descriptors[STDERR], f"sandbox: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(0)


def _program(job: dict[str, Any], descriptors: list[int], base: int) -> None:
    """Become the program: the last trusted lines."""
    extra = descriptors[EXTRA:]
    confine.settle(descriptors[STDIN:EXTRA], set(extra), job["environment"])
    try:
        confine.limit(job["limits"], base)
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
