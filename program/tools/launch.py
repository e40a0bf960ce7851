"""Starts bubblewrap as an ordinary user when CODA itself runs as root.

Root's files are not open to an ordinary user, so whatever the sandbox shall contain is first mounted, in a mount
namespace of this process alone, where that user can reach it. Run as a script: ``launch.py USER PARTS COMMAND…``,
PARTS being a JSON list of sources; ``{0}``, ``{1}``, … in the command stand for where they are to be found.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys

_NEW_MOUNTS, _BIND, _PRIVATE, _RECURSIVE = 0x20000, 0x1000, 1 << 18, 0x4000
_PLACES = ("/sys", "/mnt", "/media", "/srv")


def main(user: int, sources: list[str], command: list[str]) -> None:
    """Make the sources reachable, become the user, and execute the command."""
    places = _stage(sources) or sources
    with contextlib.suppress(OSError):  # A container may know no other user; then its root has little to lose.
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    os.execve(command[0], [_filled(part, places) for part in command], {})  # noqa: S606


def _filled(part: str, places: list[str]) -> str:
    return places[int(part[1:-1])] if part[:1] == "{" and part[1:-1].isdigit() else part


def _stage(sources: list[str]) -> list[str] | None:
    """Mount each source under a folder that this mount namespace can spare; ``None`` where mounts are not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    place = next(p for p in _PLACES if os.path.isdir(p) and not any(s.startswith(p + "/") for s in sources))  # noqa: PTH112
    if libc.unshare(_NEW_MOUNTS) or libc.mount(None, b"/", None, _PRIVATE | _RECURSIVE, None):
        return None
    if libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"mode=0755"):
        return None
    staged = []
    for number, source in enumerate(sources):
        target = f"{place}/{number}"
        if os.path.isdir(source):  # noqa: PTH112 - pathlib takes as long to load as all of this
            os.mkdir(target)  # noqa: PTH102
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        if libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND, None):
            return None
        staged.append(target)
    return staged


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:])
