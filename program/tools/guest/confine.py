"""What happens between the template and a program: its own namespaces, no capabilities, limits, the filter.

    template ── fork ──► warden (pid 1)   new namespaces, an empty /tmp of limited size, no capabilities; waits for the
                           │              program, and when it ends the kernel kills all that is left of it
                           └─ fork ──► program   limits, system-call filter, then the untrusted code

The warden cannot be killed, stopped or traced by what it watches, and it alone can report to the host.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
from collections.abc import Callable, Sequence

from coda.program.tools.guest import syscalls

READY = b"ready"
"""A warden's first words to the host."""

_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET, _NEW_CGROUP = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
    0x02000000,
)
_NO_SETUID, _NO_DEVICES, _NO_EXECUTION = 2, 4, 8
_SET_NO_NEW_PRIVS, _DROP_BOUNDING, _AMBIENT, _CLEAR_AMBIENT, _CHILD_SUBREAPER = 38, 24, 47, 4, 36
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def fork_apart(myself: int) -> int:
    """Fork; the child is the first process of a pid namespace of its own.

    Args:
        myself: A pidfd of the calling process.

    Raises:
        OSError: The kernel, or a security module, does not allow it here.
    """
    _check(_libc.unshare(_NEW_PID))
    try:
        child = os.fork()
    except OSError:
        _libc.setns(myself, _NEW_PID)
        raise
    if child != 0:
        _check(_libc.setns(myself, _NEW_PID))  # The next child is to get another namespace.
    return child


def new_space(temporary_bytes: int) -> None:
    """Enter new namespaces (all but the user's) and mount an empty file system on /tmp.

    Raises:
        OSError: The kernel, or a security module, does not allow it here.
    """
    _check(_libc.unshare(_NEW_MOUNTS | _NEW_NET | _NEW_IPC | _NEW_UTS | _NEW_CGROUP))
    options = f"size={temporary_bytes},nr_inodes=4096,mode=0777".encode()
    _check(_libc.mount(b"tmpfs", b"/tmp", b"tmpfs", _NO_SETUID | _NO_DEVICES | _NO_EXECUTION, options))


def drop_privileges() -> None:
    """Enter a user namespace of one's own, where there may be one, and give up every capability, for good."""
    _libc.unshare(_NEW_USER)
    _check(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing))


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def warden(link: socket.socket, program: Callable[[socket.socket], None]) -> None:
    """Start a process that waits for its program, say that it is there, and report how it ended. Never returns.

    Args:
        link: Socket to the host, which learns this process's id from it.
        program: Runs in the child; reads from the link what to do. It never returns either.
    """
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    child = os.fork()
    if child == 0:
        program(link)
        os._exit(0)
    keep_only({link.fileno()})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)  # Outside of a pid namespace orphans would leave the tree.
    link.sendall(READY)
    status, usage = _reap_until(child)
    report = {"status": status, "peak_kb": max(0, usage.ru_maxrss - resident)}
    with contextlib.suppress(OSError):
        link.sendall(json.dumps(report).encode())
    os._exit(0)


def _reap_until(child: int) -> tuple[int, resource.struct_rusage]:
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == child:
            return status, usage


def limit(limits: dict[str, int]) -> None:
    """Set the calling process's limits; they hold for each process that it starts."""

    def at_most(which: int, value: int) -> None:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))

    at_most(resource.RLIMIT_AS, limits["address_space"])
    cpu = limits["cpu_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    at_most(resource.RLIMIT_NPROC, limits["processes"])
    at_most(resource.RLIMIT_FSIZE, limits["file_bytes"])
    at_most(resource.RLIMIT_NOFILE, limits["files"])
    at_most(resource.RLIMIT_CORE, 1)  # 0 would still wake a crash handler of the host; 1 byte is no dump at all.
    at_most(resource.RLIMIT_MEMLOCK, 0)
    at_most(resource.RLIMIT_MSGQUEUE, 0)


def settle(standard: Sequence[int], kept: set[int], environment: dict[str, str]) -> None:
    """Become the program's process: its own session, standard files, work folder and environment, nothing else open."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for target, source in enumerate(standard):
        os.dup2(source, target, inheritable=True)
    keep_only({0, 1, 2, *kept})
    os.umask(0o077)
    home = environment["HOME"]
    with contextlib.suppress(FileExistsError):
        os.mkdir(home)  # noqa: PTH102 - pathlib is not loaded here
    os.chdir(home)
    os.environ.clear()
    os.environ.update(environment)


def keep_only(kept: set[int]) -> None:
    """Close every other descriptor."""
    low = 0
    for fd in sorted(kept):
        if low < fd:  # An empty range would close everything from there on.
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, max(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


def shut(filtered: bool) -> bool:
    """Install the system-call filter, where it is wanted and there is one for this processor."""
    return filtered and syscalls.supported() and syscalls.install(syscalls.build())
