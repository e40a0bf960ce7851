"""The Engine: the only way to a model. Every request is checked, counted, limited and, where that helps, repeated."""

from __future__ import annotations

import asyncio
from typing import Self

from coda.errors import BudgetExceeded
from coda.program.concurrency import on_background_loop, run_sync
from coda.program.engine.ask import Ask, Draft
from coda.program.engine.budget import Budget
from coda.program.engine.cache import ReplyCache
from coda.program.engine.config import EngineConfig
from coda.program.engine.flight import Flight
from coda.program.engine.ledger import CallOutcome, Ledger
from coda.program.engine.lm import EngineLM
from coda.program.engine.profiles import Effort, Profile, load_profile, profile_for
from coda.program.engine.pursuit import Pursuit
from coda.program.engine.replies import Reply, deliver
from coda.program.engine.slots import Slots
from coda.program.engine.transport import Transport, open_transport
from coda.program.types import Usage


class Engine:
    """A model, and all that stands before it.

    Copies, deep ones too, are the same Engine: they share its connections, its budget and its ledger. A pickled Engine
    is its configuration, which holds no key.

    Args:
        config: Which model, where, and within which limits.
        ledger: Where calls are recorded.

    Attributes:
        lm: What DSPy's predictors call.
        profile: What is known of the model's family, at the effort that is asked of it.
        budget: The run's budget; `coda.program.engine.budget.spending` adds others for a part of the work.

    Raises:
        UsageError: The configuration cannot work.
    """

    def __init__(self, config: EngineConfig | None = None, *, ledger: Ledger | None = None) -> None:
        self.config = config or EngineConfig()
        family = load_profile(self.config.profile) if self.config.profile else profile_for(self.config.model)
        self.profile: Profile = family.at(self.config.effort)
        self.effort: Effort = self.profile.level(None)
        self.ledger = ledger or Ledger()
        self.budget = Budget(self.config.limits)
        self.transport: Transport = open_transport(self.config)
        self.slots = Slots(self.config.concurrency or (8 if self.config.embedded else 64))
        self.cache = ReplyCache(self.config.cache_dir, self.config.cache_mb) if self.config.cache_dir else None
        self.lm = EngineLM(self)
        self._companions: list[Engine] = []
        self._flights: dict[str, Flight] = {}
        self._under_way: set[asyncio.Task[Reply]] = set()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Engine], tuple[EngineConfig]]:
        return Engine, (self.config,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def companion(self, config: EngineConfig) -> Engine:
        """Another model for a part of the work: its requests count in this Engine's budget and ledger.

        It is closed with this one.

        Args:
            config: Which model, and where; its limits and its cache's folder are this Engine's.

        Raises:
            UsageError: The configuration cannot work.
        """
        shared = {"limits": self.config.limits, "cache_dir": None}
        other = Engine(config.model_copy(update=shared), ledger=self.ledger)
        other.budget, other.cache = self.budget, self.cache
        self._companions.append(other)
        return other

    def check(self) -> None:
        """Make sure that the Engine can be asked; see `acheck`."""
        run_sync(self.transport.check())

    async def acheck(self) -> None:
        """Make sure that the Engine can be asked.

        Raises:
            UsageError: The weights or the key's variable are missing; nothing answers there, it is no OpenAI-compatible
                server, or it does not know the model.
            EngineError: It answers, and refuses.
        """
        await on_background_loop(self.transport.check())

    def close(self) -> None:
        """Give up what is under way, then close connections, cache and ledger, and those of its companions."""
        run_sync(self._close())

    async def aclose(self) -> None:
        """Give up what is under way, then close connections, cache and ledger."""
        await on_background_loop(self._close())

    async def settled(self) -> None:
        """Wait until no request is under way, those included that nobody waits for any more."""
        await on_background_loop(self._settled())

    async def ask(self, ask: Ask) -> Reply:
        """Answer a request, within the budgets; repeat it where a fault passes.

        Identical requests that are under way are joined, and replies come from the cache where there is one.

        Raises:
            BudgetExceeded: It would break a limit.
            EngineError: The Engine failed, and asking again did not help.
            UsageError: It cannot be asked like this.
        """
        reply = await on_background_loop(self._ask(ask))
        deliver(reply)
        return reply

    async def _ask(self, ask: Ask) -> Reply:
        pursuit = Pursuit(self, Draft(ask, self._effort_for(ask)))
        if self.cache is not None and (kept := await self.cache.get(pursuit.key)) is not None:
            return self._for_free(pursuit, kept, "cached")
        while True:
            flight = self._flights.get(pursuit.key)
            if flight is None or flight.over:
                return await self._take_off(pursuit).wait()
            try:
                return self._for_free(pursuit, await _join(flight, pursuit), "joined")
            except BudgetExceeded:
                # Where it was the other's budget that ended, this request has to pay for itself.
                if _out_of_time(pursuit.budgets):
                    raise

    def _take_off(self, pursuit: Pursuit) -> Flight:
        flight = Flight()
        self._flights[pursuit.key] = flight
        task = flight.start(self._fly(pursuit, flight))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        for budget in pursuit.budgets:
            if (left := budget.seconds_left) is not None:
                flight.fail_at(left, budget.expired)
        return flight

    async def _fly(self, pursuit: Pursuit, flight: Flight) -> Reply:
        try:
            reply = await pursuit.run(flight)
            if self.cache is not None:
                await self.cache.put(pursuit.key, reply)
            return reply
        finally:
            if self._flights.get(pursuit.key) is flight:
                del self._flights[pursuit.key]

    def _for_free(self, pursuit: Pursuit, reply: Reply, how: CallOutcome) -> Reply:
        """Count a reply that cost no request."""
        pursuit.record(how, reply.usage)
        for budget in pursuit.budgets:
            budget.charge(Usage(cached=1))
        return reply

    def _effort_for(self, ask: Ask) -> Effort:
        """The level that a request asks for in OpenAI's way, where the family has it; else the Engine's."""
        asked = ask.parameters.get("reasoning_effort")
        return next((level for level in self.profile.efforts if level.name == asked), self.effort)

    async def _settled(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _close(self) -> None:
        for each in (self, *self._companions):
            await each._disconnect()
        if self.cache is not None:
            self.cache.close()
        self.ledger.close()

    async def _disconnect(self) -> None:
        for flight in self._flights.values():
            flight.close()
        await self._settled()
        await self.transport.aclose()


async def _join(flight: Flight, pursuit: Pursuit) -> Reply:
    """Wait for another's request, as long as the own budgets last."""
    left = [(budget.seconds_left, budget) for budget in pursuit.budgets if budget.seconds_left is not None]
    if not left:
        return await flight.wait()
    seconds, first = min(left, key=lambda pair: pair[0] or 0.0)
    try:
        async with asyncio.timeout(seconds):
            return await flight.wait()
    except TimeoutError:
        raise first.expired() from None


def _out_of_time(budgets: tuple[Budget, ...]) -> bool:
    return any(budget.seconds_left is not None and budget.seconds_left <= 0 for budget in budgets)
