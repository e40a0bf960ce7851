"""Single flight: identical requests that are under way at the same time are one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from coda.errors import EngineError
from coda.program.engine.replies import Reply
from coda.program.engine.transport import Exchange, GivenUp

LINGER = 2.0
"""Seconds in which a server that was told that nobody waits may still send what it has begun."""


class Flight:
    """One request that others may join; all of it runs on the background loop.

    It ends when its reply is there, or when nobody waits for it any more.

    Attributes:
        exchange: The HTTP request that is under way for it, if one is.
        given_up: Why it is not waited for any more, if it is not.
        context: The context of the first who asked: its labels and budgets are the flight's.
        on_give_up: Called, in that context, at the moment at which a request that was sent is given up.
    """

    def __init__(self) -> None:
        self.exchange: Exchange | None = None
        self.given_up: GivenUp | None = None
        self.context: Context = copy_context()
        self.on_give_up: Callable[[], None] | None = None
        self.waiters = 0
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[Reply] = self._loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def over(self) -> bool:
        """Whether it is too late to join."""
        return self._outcome.done() or self.given_up is not None

    def start(self, work: Coroutine[Any, Any, Reply]) -> asyncio.Task[Reply]:
        """Begin."""
        self.task = self._loop.create_task(work, context=self.context)
        self.task.add_done_callback(self._done)
        return self.task

    async def wait(self) -> Reply:
        """Wait for the reply."""
        self.waiters += 1
        try:
            return await asyncio.shield(self._outcome)
        finally:
            self.waiters -= 1
            if self.waiters == 0 and not self._outcome.done():
                self._outcome.cancel()
                self.give_up("cancelled")

    def fail_at(self, seconds: float, error: Callable[[], Exception]) -> None:
        """End it after so many seconds with an error, whatever it is doing then."""

        def expire() -> None:
            if not self._outcome.done():
                self._outcome.set_exception(error())
                self.give_up("budget")

        self._timers.append(self._loop.call_later(max(0.0, seconds), expire))

    def close(self) -> None:
        """End it because the Engine is closed."""
        if not self._outcome.done():
            self._outcome.set_exception(EngineError("The Engine was closed before the reply came."))
            self.give_up("cancelled")

    def give_up(self, why: GivenUp) -> None:
        """Wait no longer; a request that was sent has a moment left to say what it cost."""
        self.given_up = why
        self.cut_off(why)

    def cut_off(self, why: GivenUp) -> None:
        """Give up the exchange that is under way; the flight goes on where only that one took too long."""
        exchange = self.exchange
        if exchange is None:
            self.task.cancel()
        elif exchange.given_up is None:
            exchange.given_up = why
            if not exchange.sent:
                self.task.cancel()
                return
            if self.on_give_up is not None:
                self.context.run(self.on_give_up)
            self._timers.append(self._loop.call_later(LINGER if exchange.hang_up() else 0.0, self._cancel, exchange))

    def _cancel(self, exchange: Exchange) -> None:
        if self.exchange is exchange:
            self.task.cancel()

    def _done(self, task: asyncio.Task[Reply]) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._outcome.done():
            if not task.cancelled():
                task.exception()  # nobody is left to hear of it
            return
        if task.cancelled():
            self._outcome.cancel()
        elif (error := task.exception()) is not None:
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(task.result())
