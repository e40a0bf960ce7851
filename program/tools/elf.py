"""Which shared libraries a binary needs, read from the file itself: nothing is executed to find out."""

from __future__ import annotations

import mmap
import os
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<qQ")
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _RPATH, _RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True)
class Binary:
    """What a binary says about itself.

    Attributes:
        needed: Names of the libraries that it needs.
        search: Folders where it wants them looked for first.
        interpreter: The dynamic linker, for an executable.
    """

    needed: tuple[str, ...]
    search: tuple[str, ...]
    interpreter: str | None


def read(file: Path) -> Binary | None:
    """Read a binary; ``None`` where the file is no 64-bit little-endian ELF file."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse(data, file)
    except (OSError, struct.error, ValueError, StopIteration):
        return None


def _parse(data: mmap.mmap, file: Path) -> Binary | None:
    head = _HEADER.unpack_from(data)
    if head[0][:6] != b"\x7fELF\x02\x01":
        return None
    segments = [_SEGMENT.unpack_from(data, head[5] + i * head[9]) for i in range(head[10])]
    interpreter = next((data[s[2] : s[2] + s[5] - 1].decode() for s in segments if s[0] == _INTERPRETER), None)
    dynamic = next((s for s in segments if s[0] == _DYNAMIC), None)
    if dynamic is None:
        return Binary((), (), interpreter)
    entries = list(_ENTRY.iter_unpack(data[dynamic[2] : dynamic[2] + dynamic[5] // _ENTRY.size * _ENTRY.size]))
    address = next(value for tag, value in entries if tag == _STRINGS)
    start = next(s[2] + address - s[3] for s in segments if s[0] == _LOAD and s[3] <= address < s[3] + s[6])

    def text(offset: int) -> str:
        return data[start + offset : data.find(b"\0", start + offset)].decode()

    needed = tuple(text(value) for tag, value in entries if tag == _NEEDED)
    paths = [text(value) for tag, value in entries if tag in {_RPATH, _RUNPATH}]
    folders = [part for path in paths for part in path.split(":") if part]
    return Binary(needed, tuple(_absolute(folder, file) for folder in folders), interpreter)


def _absolute(folder: str, file: Path) -> str:
    origin = str(file.resolve().parent)
    return os.path.normpath(folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin))


def standard_folders() -> tuple[Path, ...]:
    """Where the dynamic linker looks without being told."""
    triplet = f"{platform.machine()}-linux-gnu"
    names = (f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
    return tuple(path for path in map(Path, names) if path.is_dir())


def closure(binaries: Iterable[Path], inside: Iterable[Path]) -> dict[str, Path]:
    """All libraries that the binaries need, and those that these need, by name.

    Args:
        binaries: Executables and libraries.
        inside: Folders whose content comes along anyway; libraries in them are followed, and left out.

    Returns:
        The libraries' files; a name that cannot be found is left out, as it may never be loaded.
    """
    found: dict[str, Path] = {}
    kept = [folder.resolve() for folder in inside]
    folders = standard_folders()
    queue, known = list(binaries), set[str]()
    while queue:
        binary = read(queue.pop())
        if binary is None:
            continue
        for name in binary.needed:
            if name in known:
                continue
            known.add(name)
            candidates = [Path(folder) / name for folder in binary.search] + [folder / name for folder in folders]
            target = next((path for path in candidates if path.exists()), None)
            if target is None:
                known.discard(name)  # Another binary may know where it is.
                continue
            queue.append(target)
            if not any(target.resolve().is_relative_to(folder) for folder in kept):
                found[name] = target
    return found


def named(names: Iterable[str]) -> dict[str, Path]:
    """The libraries of these names, those that are here."""
    folders = standard_folders()
    paths = {name: next((folder / name for folder in folders if (folder / name).exists()), None) for name in names}
    return {name: path for name, path in paths.items() if path is not None}
