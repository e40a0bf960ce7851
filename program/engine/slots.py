"""So many requests in flight, and no more; fewer while the server says that it is too much."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A semaphore whose size follows the server: smaller when it limits the rate, and grown back with its replies.

    Args:
        limit: The most requests in flight.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._window = float(limit)
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def window(self) -> int:
        """How many requests may be in flight now."""
        return max(1, int(self._window))

    async def take(self) -> None:
        """Wait for a slot, first come, first served."""
        if self._taken < self.window and not self._waiting:
            self._taken += 1
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Return a slot."""
        self._taken -= 1
        self._hand_on()

    def shrink(self) -> None:
        """The server limits the rate."""
        self._window = max(1.0, self._window * 0.75)

    def grow(self) -> None:
        """The server gave a reply."""
        if self._window < self.limit:
            self._window = min(float(self.limit), self._window + 2 / self._window)
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting and self._taken < self.window:
            future = self._waiting.popleft()
            if not future.done():
                self._taken += 1
                future.set_result(None)
