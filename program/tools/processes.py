"""The processes of a job as the host sees them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def address_space(pid: int) -> int:
    """Bytes of a process's address space, 0 where the host does not show it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def descendants(pid: int) -> list[int]:
    """All processes below ``pid``, children before their own children."""
    found: list[int] = []
    queue = [pid]
    while queue:
        for child in children(queue.pop()):
            if child not in found:
                found.append(child)
                queue.append(child)
    return found


def children(pid: int) -> Iterator[int]:
    """The processes that this one, or a thread of it, started and that have not been waited for."""
    with contextlib.suppress(OSError, ValueError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def memory_of_tree(pid: int) -> int:
    """Bytes of memory that the processes below ``pid`` use together, shared pages counted in parts."""
    return sum(map(_proportional, descendants(pid)))


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    except (OSError, ValueError, StopIteration):
        return 0


def kill_tree(pid: int) -> None:
    """Kill everything below ``pid``, again and again until nothing is left that forks, then ``pid`` itself."""
    for _ in range(100):
        below = descendants(pid)
        for process in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not below:
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
