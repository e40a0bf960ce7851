"""Pursues one reply: sends the request, and sends it again where a fault passes, within all budgets in force."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from coda.errors import BudgetExceeded, CodaError, EngineError, UsageError
from coda.program.engine.ask import Draft, adapt, digest, encode, limit_of, most_prompt_tokens, render
from coda.program.engine.budget import Reservation, budgets_in_force, reserve_in_all
from coda.program.engine.flight import Flight
from coda.program.engine.labels import current_labels
from coda.program.engine.ledger import Call, CallOutcome
from coda.program.engine.remedies import Remedies
from coda.program.engine.replies import Reply
from coda.program.engine.server import Server, ServerDown
from coda.program.engine.transport import Exchange, Outgoing
from coda.program.engine.wire import UnusableReply
from coda.program.types import Usage

if TYPE_CHECKING:
    from coda.program.engine.engine import Engine


@dataclass
class Try:
    """One sending of the request, and what came of it."""

    draft: Draft
    request: Outgoing
    number: int
    max_tokens: int
    reservation: Reservation
    exchange: Exchange = field(default_factory=Exchange)
    started: float = 0.0
    outcome: CallOutcome = "cancelled"
    holds_slot: bool = True
    error: EngineError | None = None
    reply: Reply | None = None

    @property
    def cost(self) -> Usage:
        """What it cost, as far as the server has said."""
        if self.reply is not None:
            return self.reply.usage
        return self.error.usage if isinstance(self.error, UnusableReply) else Usage(calls=1)


class Pursuit:
    """One reply's pursuit. The labels and budgets in force where it is made are those of its requests.

    Args:
        engine: The Engine that is asked.
        draft: The first draft.

    Raises:
        UsageError: The request cannot be sent as it is.
    """

    def __init__(self, engine: Engine, draft: Draft) -> None:
        self.engine = engine
        self.draft = draft
        self.labels = current_labels()
        self.budgets = (engine.budget, *budgets_in_force())
        self._body = render(draft, engine.profile, engine.config.seed)
        self._content = encode(self._body)
        self.key = digest(engine.transport.address, engine.config.model, self._content, draft.ask.rollout)

    async def run(self, flight: Flight) -> Reply:
        """Send requests until there is a reply that will do, or no remedy is left.

        Raises:
            BudgetExceeded: A request would break a limit, and there is no reply at all.
            EngineError: All remedies failed, and there is no reply at all.
        """
        server = await self.engine.transport.open()
        habits = server.habits(self.engine.config.model)
        remedies = Remedies(self.engine.profile, habits, self.engine.config.max_retries)
        draft, number = self.draft, 0
        best: Reply | None = None
        while True:
            body = adapt(self._body if draft is self.draft else self._render(draft), habits, draft)
            pause = 0.0
            try:
                this = await self._prepare(draft, body, number, optional=best is not None)
                reply = await self._try(flight, server, this)
            except EngineError as error:
                if best is not None:
                    return best
                draft, pause = remedies.after_fault(error, draft, body)
            except BudgetExceeded:
                if best is not None:
                    return best
                raise
            else:
                best = reply if reply.text or best is None else best
                better = remedies.after_cut(reply, draft, body) if reply.finish == "length" else None
                if better is None:
                    return best
                draft = better
            number += 1
            if pause > 0:
                await asyncio.sleep(pause)

    def record(self, outcome: CallOutcome, usage: Usage, **details: Any) -> None:
        """Write a line into the ledger."""
        labels = self.labels
        self.engine.ledger.record(
            Call(
                time=time.time(),
                model=self.engine.config.model,
                outcome=outcome,
                problem=labels.problem,
                sample=labels.sample,
                stage=labels.stage,
                attempt=labels.attempt,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                request=self.key[:16],
                **details,
            )
        )

    def _render(self, draft: Draft) -> dict[str, Any]:
        return render(draft, self.engine.profile, self.engine.config.seed)

    async def _prepare(self, draft: Draft, body: dict[str, Any], number: int, *, optional: bool) -> Try:
        """Set aside the request's worst case in all budgets.

        Args:
            draft: What to send.
            body: The same, as the server takes it.
            number: How many requests went before.
            optional: Whether there is a reply already: then a budget that has no room for a better one has not ended.
        """
        content = self._content if body == self._body else encode(body)
        limit = limit_of(body)
        prompt, reply = most_prompt_tokens(content), limit or self.engine.profile.context
        prices = self.engine.config.prices
        if prices is None and any(budget.limits.max_usd is not None for budget in self.budgets):
            raise UsageError("A limit in USD needs the Engine's prices: set EngineConfig(prices=…), or --prices.")
        usd = prices.usd(prompt, reply) if prices is not None else 0.0
        reservation = await reserve_in_all(self.budgets, prompt + reply, usd, optional=optional)
        request = Outgoing(body, content, draft.effort.thinking_tokens > 0)
        return Try(draft, request, number, limit, reservation)

    async def _try(self, flight: Flight, server: Server, this: Try) -> Reply:
        """Send the request once: wait for a slot, send, settle, record."""
        try:
            await self.engine.slots.take()
        except BaseException:
            this.reservation.release()
            raise
        try:
            await server.wait()
            return await self._exchange(flight, this)
        finally:
            self._conclude(server, this)

    def _usd(self, cost: Usage) -> float:
        prices = self.engine.config.prices
        return prices.usd(cost.prompt_tokens, cost.completion_tokens) if prices is not None else 0.0

    async def _exchange(self, flight: Flight, this: Try) -> Reply:
        """Send, wait, and say how it ended; one that was given up ends here too, whatever has come of it."""
        this.started = time.monotonic()
        timeout = self.engine.config.timeout
        timer = asyncio.get_running_loop().call_later(timeout, flight.cut_off, "timeout")
        flight.exchange, flight.on_give_up = this.exchange, partial(self._given_up, this)
        try:
            this.reply = await self.engine.transport.send(this.request, this.exchange, self.engine.profile)
            this.outcome = "truncated" if this.reply.finish == "length" else "ok"
        except asyncio.CancelledError:
            if this.exchange.given_up != "timeout" or flight.given_up is not None:
                raise
            flight.task.uncancel()
        except EngineError as error:
            this.error, this.outcome = error, "failed"
        except CodaError:
            raise
        except Exception as error:
            this.error, this.outcome = EngineError(f"The Engine layer failed: {error!r}.", kind="unexpected"), "failed"
            this.error.__cause__ = error
        finally:
            timer.cancel()
            flight.exchange = None
        if flight.given_up is not None:
            this.outcome = "cancelled"
            raise asyncio.CancelledError
        if this.reply is not None:
            return this.reply
        if this.exchange.given_up == "timeout" and not isinstance(this.error, UnusableReply):
            this.outcome = "failed"
            this.error = EngineError(
                f"No reply within {timeout:g} s. Raise --timeout, or lower --concurrency.", kind="timeout"
            )
        assert this.error is not None  # noqa: S101 - the only other way out of the block above
        raise this.error

    def _given_up(self, this: Try) -> None:
        """The reply is not waited for any more: others may go on, while the server still says what it cost."""
        this.reservation.count_call()
        this.holds_slot = False
        self.engine.slots.give_back()

    def _conclude(self, server: Server, this: Try) -> None:
        """Settle with the budgets, write the line, and note how the server does."""
        if this.holds_slot:
            self.engine.slots.give_back()
        if this.exchange.sent:
            this.reservation.settle(this.cost, self._usd(this.cost))
        else:
            this.reservation.release()
        error = this.error
        if this.exchange.sent or error is not None:
            reply = this.reply
            self.record(
                this.outcome if this.exchange.sent else "unsent",
                this.cost,
                retry=this.number,
                fault=error.kind if error is not None else None,
                status=error.status if error is not None else None,
                cached_tokens=reply.cached_tokens if reply is not None else 0,
                usd=self._usd(this.cost) if self.engine.config.prices is not None else None,
                max_tokens=this.max_tokens or None,
                effort=this.draft.effort.name or None,
                seconds=round(time.monotonic() - this.started, 4),
            )
        self._note(server, this)

    def _note(self, server: Server, this: Try) -> None:
        error = this.error
        if isinstance(error, ServerDown):
            return
        if error is None:
            if this.reply is not None:
                server.succeeded()
                self.engine.slots.grow()
        elif error.kind == "rate-limit" or (error.kind == "server" and error.retry_after is not None):
            if server.paused <= 0:
                self.engine.slots.shrink()
            server.limit(error.retry_after)
        elif error.kind in ("connection", "timeout", "server"):
            server.failed(error)
        elif error.status is not None:
            server.answered()
