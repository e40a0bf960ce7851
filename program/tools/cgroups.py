"""Control groups (version 2): limits of memory and processes for a program as a whole.

They need a group that was delegated to this user, with the controllers `memory` and `pids`. The kernel wants processes
in leaves only, so this process moves itself into a leaf of its own before it makes groups beside it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = ("memory", "pids")
_numbers = itertools.count()


@dataclass(frozen=True)
class Delegation:
    """The group in which this process may make others.

    Attributes:
        path: Its folder; ``None`` where control groups of version 2 are not mounted.
        usable: Whether it has the controllers and may be written.
    """

    path: Path | None
    usable: bool


@functools.cache
def delegation() -> Delegation:
    """Find out whether this process may make control groups."""
    group = own_group(Path("/proc/self/cgroup"), Path("/proc/self/mountinfo"))
    return Delegation(group, group is not None and _prepare(group))


def own_group(membership: Path, mounts: Path) -> Path | None:
    """The folder of this process's control group.

    Args:
        membership: ``/proc/self/cgroup``.
        mounts: ``/proc/self/mountinfo``.
    """
    with contextlib.suppress(OSError):
        lines = [line.split(" - ") for line in mounts.read_text().splitlines()]
        mount = next((left.split()[4] for left, right in lines if right.startswith("cgroup2 ")), None)
        paths = [line[3:] for line in membership.read_text().splitlines() if line.startswith("0::")]
        if mount is not None and paths:
            return Path(mount) / paths[0].lstrip("/")
    return None


def _prepare(group: Path) -> bool:
    """Hand the controllers on to groups below; this process goes into one of them first."""
    try:
        offered = (group / "cgroup.controllers").read_text().split()
        if not set(CONTROLLERS) <= set(offered) or not os.access(group / "cgroup.procs", os.W_OK):
            return False
        if not set(CONTROLLERS) <= set((group / "cgroup.subtree_control").read_text().split()):
            _move_into_leaf(group)
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
        with Group(group, memory_bytes=1 << 26, processes=8):
            return True
    except OSError:
        return False


def _move_into_leaf(group: Path) -> None:
    """Move the group's processes, if this one is alone there."""
    if (group / "cgroup.procs").read_text().split() != [str(os.getpid())]:
        raise PermissionError("other processes live in this control group")
    leaf = group / f"coda-{os.getpid()}"
    leaf.mkdir(exist_ok=True)
    (leaf / "cgroup.procs").write_text(str(os.getpid()))


class Group:
    """A control group for one program; a context manager that removes it.

    Args:
        parent: The delegated group.
        memory_bytes: Memory of all its processes together.
        processes: How many there may be.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, parent: Path, *, memory_bytes: int, processes: int) -> None:
        self.path = parent / f"coda-{os.getpid()}-{next(_numbers)}"
        self.path.mkdir()
        try:
            self._set("memory.max", memory_bytes)
            self._set("pids.max", processes)
            with contextlib.suppress(OSError):  # Machines without swap accounting have no such file.
                self._set("memory.swap.max", 0)
        except OSError:
            self.path.rmdir()
            raise

    def _set(self, name: str, value: int) -> None:
        (self.path / name).write_text(str(value))

    def add(self, pid: int) -> None:
        """Put a process under the limits; what it starts from now on is too."""
        self._set("cgroup.procs", pid)

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for its memory."""
        try:
            events = dict(line.split() for line in (self.path / "memory.events").read_text().splitlines())
        except (OSError, ValueError):
            return False
        return events.get("oom_kill", "0") != "0"

    @property
    def peak_bytes(self) -> int | None:
        """The most memory that the group used; ``None`` where the kernel does not say."""
        try:
            return int((self.path / "memory.peak").read_text())
        except (OSError, ValueError):
            return None

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._set("cgroup.kill", 1)
        with contextlib.suppress(OSError):
            self.path.rmdir()
