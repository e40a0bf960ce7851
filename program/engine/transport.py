"""What a way to a model must offer, and which one a configuration takes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from coda.program.engine.config import EngineConfig
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.engine.server import Server

GivenUp = Literal["cancelled", "timeout", "budget"]


class Exchange:
    """One request and its reply, on their way.

    Attributes:
        sent: Whether the request has left the process, or is about to.
        given_up: Why the reply is not waited for any more, if it is not.
    """

    def __init__(self) -> None:
        self.sent = False
        self.given_up: GivenUp | None = None
        self.connection: Any = None

    def hang_up(self) -> bool:
        """Tell the server that nobody waits any more, and read on what it has already sent.

        Closing our side alone is what lets both sides agree on what the reply cost: either it is on its way, and is
        read, or the server sees the end first, and does not send it.

        Returns:
            Whether that could be done; if not, the exchange has to be cut off.
        """
        protocol = getattr(self.connection, "protocol", None)
        if protocol is None:
            return self.connection is not None  # its reply has just been read to the end
        protocol.force_close()
        transport = protocol.transport
        if transport is not None and not transport.can_write_eof():
            return False
        # The request itself may have been handed to the loop in this very moment; it goes first.
        asyncio.get_running_loop().call_soon(_close_our_side, transport)
        return True


def _close_our_side(transport: asyncio.WriteTransport | None) -> None:
    if transport is not None and not transport.is_closing():
        transport.write_eof()


@dataclass(frozen=True)
class Outgoing:
    """A request, ready to be sent.

    Attributes:
        body: All of it but the model's name.
        content: The same as bytes.
        thinks: Whether the Engine is asked to think.
    """

    body: dict[str, Any]
    content: bytes
    thinks: bool


class Transport(Protocol):
    """A way to a model. `Engine` calls `open` before anything else; all of it runs on the background loop.

    Attributes:
        address: What tells its server from others; empty for the embedded one, whose port changes.
    """

    address: str

    async def open(self) -> Server:
        """Find the server, or start it."""

    async def check(self) -> None:
        """Make sure that the model can be asked; see `Engine.acheck` for what it raises."""

    async def context(self) -> int | None:
        """Tokens of prompt and reply together, where the server tells."""

    async def send(self, request: Outgoing, exchange: Exchange, profile: Profile) -> Reply:
        """Send one request, once.

        Raises:
            EngineError: Whatever went wrong.
        """

    async def aclose(self) -> None:
        """Close connections."""


def open_transport(config: EngineConfig) -> Transport:
    """The transport that a configuration takes."""
    if config.over_http:
        from coda.program.engine.openai_http import HttpTransport

        return HttpTransport(config)
    from coda.program.engine.provider import ProviderTransport

    return ProviderTransport(config)
