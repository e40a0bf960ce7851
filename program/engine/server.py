"""What the process knows of a server: when to leave it alone, whether it is down, and what it does not take.

All Engines of a process that talk to one address share this. When the server tells one of them to wait, all wait.
"""

from __future__ import annotations

import asyncio
import random
import time
import weakref
from dataclasses import dataclass, field

from coda.errors import EngineError

FIRST_PAUSE = 0.5
"""Seconds that a server which does not say for how long is left alone; twice as long each time it happens again."""
LONGEST_PAUSE = 60.0

DOWN_AFTER = 10.0
"""Seconds without one good reply, and so many faults in a row (next line), after which a server is taken to be down."""
DOWN_FAULTS = 5
DOWN_FOR = 15.0
"""Seconds until the next request may try whether it is up again."""

_servers: weakref.WeakValueDictionary[str, Server] = weakref.WeakValueDictionary()

TOKENS_PER_CHARACTER = 0.3
"""A guess, for the room that a prompt leaves; where it is wrong, the server refuses, and says the truth."""


class ServerDown(EngineError):
    """The server is taken to be down: the request was not sent."""


@dataclass
class Habits:
    """What a server does not take for one of its models, learned from its refusals."""

    dropped: set[str] = field(default_factory=set)
    """Parameters that it rejects."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Parameters that it wants under another name."""
    context: int | None = None
    """Tokens of prompt and reply together, once it has said so."""
    tokens_per_character: float = TOKENS_PER_CHARACTER
    """How many tokens it made of a character of the prompt that it last refused."""


class Server:
    """One address.

    Args:
        address: The base of its API.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._habits: dict[str, Habits] = {}
        self._resume = 0.0
        self._limited = 0
        self._faults = 0
        self._failing_since: float | None = None
        self._try_at = 0.0
        self._last: EngineError | None = None

    def habits(self, model: str) -> Habits:
        """What was learned about one of its models."""
        return self._habits.setdefault(model, Habits())

    @property
    def paused(self) -> float:
        """Seconds for which it is still to be left alone."""
        return max(0.0, self._resume - time.monotonic())

    async def wait(self) -> None:
        """Wait while it is to be left alone.

        Raises:
            ServerDown: It is taken to be down.
        """
        while (seconds := self.paused) > 0:  # noqa: ASYNC110 - it is a time, not an event, that is waited for
            # Those who waited must not come back all at once.
            await asyncio.sleep(seconds + random.uniform(0.0, 0.05 + 0.1 * seconds))
        self._raise_if_down()

    def limit(self, seconds: float | None) -> float:
        """Leave it alone for so long, or, where it does not say, for longer each time; return the seconds."""
        if self.paused <= 0:
            self._limited += 1
        pause = seconds if seconds is not None else min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (self._limited - 1))
        self._resume = max(self._resume, time.monotonic() + pause)
        return pause

    def succeeded(self) -> None:
        """Note a good reply."""
        self._limited = 0
        self.answered()

    def answered(self) -> None:
        """Note that it is up."""
        self._faults = 0
        self._failing_since = None

    def failed(self, error: EngineError) -> None:
        """Note a fault that may mean that it is down."""
        now = time.monotonic()
        self._faults += 1
        self._last = error
        if self._failing_since is None:
            self._failing_since = now
        if self._down(now):
            self._try_at = now + DOWN_FOR

    def _down(self, now: float) -> bool:
        since = self._failing_since
        return since is not None and self._faults >= DOWN_FAULTS and now - since >= DOWN_AFTER

    def _raise_if_down(self) -> None:
        now = time.monotonic()
        if self._last is None or not self._down(now):
            return
        if now >= self._try_at:
            self._try_at = now + DOWN_FOR  # this request tries; the others go on failing until it comes back
            return
        since = now - (self._failing_since or now)
        raise ServerDown(
            f"{self.address} is down: {self._faults} requests in a row have failed for {since:.0f} s, the last one "
            f"with: {self._last} Start it again and run the same command.",
            kind=self._last.kind,
            status=self._last.status,
        )


def server_at(address: str) -> Server:
    """The process's one `Server` for an address."""
    server = _servers.get(address)
    if server is None:
        server = _servers[address] = Server(address)
    return server
