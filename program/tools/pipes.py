"""What goes into a program and what comes out of it: descriptors."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable

_PIECE = 1 << 16


class Tap:
    """Collects what comes out of a pipe, up to a limit.

    Args:
        limit: Bytes.
        overflow: Called when there is more.
    """

    def __init__(self, limit: int, overflow: Callable[[], None]) -> None:
        self.fd, self.inner = os.pipe()
        os.set_blocking(self.fd, False)
        self._limit = limit
        self._overflow = overflow
        self._data = bytearray()
        asyncio.get_running_loop().add_reader(self.fd, self._read)

    @property
    def data(self) -> bytes:
        """What came, at most as much as the limit."""
        return bytes(self._data[: self._limit])

    def drain(self) -> None:
        """Read what is left, once the writers are gone."""
        while self._read():
            pass

    def _read(self) -> bool:
        try:
            piece = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return False
        self._data += piece
        if len(self._data) > self._limit:
            del self._data[self._limit + 1 :]
            self._overflow()
        if not piece:
            asyncio.get_running_loop().remove_reader(self.fd)
        return bool(piece)

    def close_inner(self) -> None:
        """Close the writers' end, once they have theirs: only then does the reader see them go."""
        if self.inner >= 0:
            os.close(self.inner)
            self.inner = -1

    def close(self) -> None:
        """Close both ends."""
        self.close_inner()
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)


def sealed(content: bytes) -> int:
    """A descriptor from which ``content`` can be read, and that nobody can change."""
    fd = os.memfd_create("coda", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd
