"""Messages between the job that tests and the job that is tested: JSON, with the length in front."""

from __future__ import annotations

import json
import struct
from typing import Any

LARGEST = 64 << 20
_LENGTH = struct.Struct("<I")


class Wire:
    """One end of the connection.

    Args:
        fd: A connected stream socket.
    """

    def __init__(self, fd: int) -> None:
        import socket

        self._socket = socket.socket(fileno=fd)

    def send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Raises:
            OSError: The other end has gone.
        """
        data = json.dumps(message, separators=(",", ":")).encode()
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> dict[str, Any] | None:
        """The next message, ``None`` when the other end has gone.

        Raises:
            ValueError: What came is no message.
        """
        head = self._exactly(_LENGTH.size)
        if head is None:
            return None
        (size,) = _LENGTH.unpack(head)
        if size > LARGEST:
            raise ValueError(f"a message of {size} bytes")
        data = self._exactly(size)
        if data is None:
            return None
        try:
            message = json.loads(data)
        except RecursionError as error:
            raise ValueError("a message nested too deeply") from error
        if not isinstance(message, dict):
            raise ValueError("a message of another form")
        return message

    def _exactly(self, size: int) -> bytes | None:
        parts = []
        while size:
            try:
                part = self._socket.recv(min(size, 1 << 20))
            except ConnectionError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
