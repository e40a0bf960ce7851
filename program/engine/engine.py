"""The Engine: a `dspy.LM` behind which every request is checked, counted, limited and, where that helps, repeated."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart
from dspy.lm15 import Usage as WireUsage
from dspy.utils.exceptions import LMError

from coda.errors import BudgetExceeded, CodaError, EngineError
from coda.program.concurrency import on_background_loop, run_sync
from coda.program.engine.budget import Budget, budgets_in_force
from coda.program.engine.config import EngineConfig
from coda.program.engine.labels import current_labels
from coda.program.engine.ledger import Call, CallOutcome, Ledger
from coda.program.engine.profiles import Profile, load_profile, profile_for
from coda.program.engine.replies import Reply, deliver
from coda.program.engine.transport import Transport, open_transport
from coda.program.types import Usage

TOKENS_PER_MESSAGE = 16
"""Most that a chat template adds to a message."""

_rollout: ContextVar[int | None] = ContextVar("coda_rollout", default=None)


class EngineLM(dspy.LM):  # type: ignore[misc]
    """The LM that DSPy sees. All its copies share one Engine."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(
            engine.config.model,
            engine=_SyncDoor(engine),
            async_engine=_AsyncDoor(engine),
            cache=False,
            num_retries=0,
        )

    def __call__(self, prompt: str | None = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Ask and wait."""
        with _as_coda_errors(), _with_rollout(self, kwargs):
            return super().__call__(prompt, messages=messages, **kwargs)

    async def acall(self, prompt: str | None = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Ask."""
        with _as_coda_errors(), _with_rollout(self, kwargs):
            return await super().acall(prompt, messages=messages, **kwargs)

    def update_history(self, entry: dict[str, Any]) -> None:
        """Keep none: the ledger has what matters, and thousands of prompts would stay in memory."""


class Engine:
    """The only way to a model.

    Args:
        config: Which model, where, and within which limits.
        ledger: Where calls are recorded.

    Attributes:
        lm: What DSPy's predictors call.
        profile: What is known of the model's family.
        budget: The run's budget; `coda.program.engine.budget.spending` adds others for a part of the work.
    """

    def __init__(self, config: EngineConfig | None = None, *, ledger: Ledger | None = None) -> None:
        self.config = config or EngineConfig()
        self.profile: Profile = (
            load_profile(self.config.profile) if self.config.profile else profile_for(self.config.model)
        )
        self.ledger = ledger or Ledger()
        self.budget = Budget(self.config.limits)
        self.transport: Transport = open_transport(self.config)
        self._slots = asyncio.Semaphore(self.config.concurrency or (8 if self.transport.local else 64))
        self.lm = EngineLM(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and the ledger's file."""
        run_sync(self.transport.aclose())
        self.ledger.close()

    def check(self) -> None:
        """Make sure that the Engine can be asked; see `acheck`."""
        run_sync(self.acheck())

    async def acheck(self) -> None:
        """Make sure that the Engine can be asked.

        Raises:
            UsageError: The weights or the key's variable are missing.
            EngineError: Nothing answers there, it is no OpenAI-compatible server, or it does not know the model.
        """
        await on_background_loop(self.transport.check())

    async def complete(self, request: Request) -> Response:
        """Answer a request, within the budgets; repeat it where a fault passes."""
        body = self._body(request)
        digest = hashlib.sha256(json.dumps([body, _rollout.get()], sort_keys=True).encode()).hexdigest()[:16]
        worst = _worst_case(body)
        async with self._slots:
            for retry in range(self.config.max_retries + 1):
                try:
                    reply = await self._once(body, worst, retry, digest)
                    break
                except EngineError as error:
                    if not error.transient or retry == self.config.max_retries:
                        raise
                    await asyncio.sleep(error.retry_after or min(8.0, 0.25 * 2**retry))
        deliver(reply)
        return _response(request.model, reply)

    async def _once(self, body: dict[str, Any], worst: int, retry: int, digest: str) -> Reply:
        """Send one request: reserve, send, settle, record."""
        budgets = (self.budget, *budgets_in_force())
        started = time.monotonic()
        cost, outcome, fault, status = Usage(calls=1), "cancelled", None, None
        with ExitStack() as stack:
            for budget in budgets:
                budget.reserve(worst)
                stack.callback(lambda budget=budget: budget.settle(worst, cost))
            try:
                async with asyncio.timeout(self._patience(budgets)):
                    reply = await self.transport.send(body, self.profile)
                cost, outcome = reply.usage, "truncated" if reply.finish == "length" else "ok"
                return reply
            except TimeoutError as error:
                outcome, fault = "failed", "timeout"
                raise self._too_late(budgets) from error
            except EngineError as error:
                outcome, fault, status = "failed", error.kind, error.status
                raise
            finally:
                self._record(cost, outcome, fault, status, retry, time.monotonic() - started, digest)

    def _patience(self, budgets: tuple[Budget, ...]) -> float:
        left = [budget.seconds_left for budget in budgets if budget.seconds_left is not None]
        return max(0.0, min([self.config.timeout, *left]))

    def _too_late(self, budgets: tuple[Budget, ...]) -> CodaError:
        if any(budget.seconds_left is not None and budget.seconds_left <= 0 for budget in budgets):
            return BudgetExceeded("The budget of seconds ended while a request was under way. Raise --max-seconds.")
        return EngineError(
            f"No reply within {self.config.timeout:g} s. Raise --timeout, or lower --concurrency.", kind="timeout"
        )

    def _record(
        self, cost: Usage, outcome: Any, fault: Any, status: int | None, retry: int, seconds: float, digest: str
    ) -> None:
        self.ledger.record(
            Call(
                time=time.time(),
                model=self.config.model,
                outcome=outcome,
                **current_labels().__dict__,
                retry=retry,
                fault=fault,
                status=status,
                prompt_tokens=cost.prompt_tokens,
                completion_tokens=cost.completion_tokens,
                reasoning_tokens=cost.reasoning_tokens,
                seconds=round(seconds, 4),
                request=digest,
            )
        )

    def _body(self, request: Request) -> dict[str, Any]:
        """The request as OpenAI's protocol has it, with the profile applied."""
        config = request.config
        system = request.system if isinstance(request.system, str) else None
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": each.role, "content": _text(each)} for each in request.messages]
        body: dict[str, Any] = {"messages": messages, "max_tokens": config.max_tokens or self.profile.max_tokens}
        body["max_tokens"] = min(body["max_tokens"], self.profile.max_tokens)
        temperature = self.profile.temperature if self.profile.temperature is not None else config.temperature
        if temperature is not None:
            body["temperature"] = temperature
        if config.stop:
            body["stop"] = list(config.stop)
        if self.config.seed is not None:
            body["seed"] = _seed(self.config.seed, _rollout.get())
        return {**body, **self.profile.parameters}


@dataclass(frozen=True)
class _AsyncDoor:
    engine: Engine

    async def complete(self, request: Request) -> Response:
        return await on_background_loop(self.engine.complete(request))


@dataclass(frozen=True)
class _SyncDoor:
    engine: Engine

    def complete(self, request: Request) -> Response:
        return run_sync(self.engine.complete(request))


class _as_coda_errors:  # noqa: N801 - reads as a statement
    """Give back our own errors, which DSPy wraps in its own."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, LMError):
            return
        if isinstance(error.__cause__, CodaError):
            raise error.__cause__
        raise EngineError(str(error), kind="unexpected") from error


class _with_rollout:  # noqa: N801 - reads as a statement
    def __init__(self, lm: dspy.LM, kwargs: dict[str, Any]) -> None:
        self.rollout = kwargs.get("rollout_id", lm.kwargs.get("rollout_id"))

    def __enter__(self) -> None:
        self.token = _rollout.set(self.rollout)

    def __exit__(self, *_: object) -> None:
        _rollout.reset(self.token)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def _seed(seed: int, rollout: int | None) -> int:
    """A seed of its own for every sample, the same in every run."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{rollout}".encode()).digest()[:4], "big") >> 1


def _worst_case(body: dict[str, Any]) -> int:
    """The most tokens that a request can take: no token is shorter than a byte."""
    prompt = sum(len(message["content"].encode()) + TOKENS_PER_MESSAGE for message in body["messages"])
    return prompt + int(body["max_tokens"])


def _response(model: str, reply: Reply) -> Response:
    parts = [ThinkingPart(reply.thinking)] if reply.thinking else []
    return Response(
        id=None,
        model=model,
        message=Message(role="assistant", parts=(*parts, TextPart(reply.text))),
        finish_reason=reply.finish if reply.finish in ("stop", "length", "content_filter") else "stop",
        usage=WireUsage(input_tokens=reply.usage.prompt_tokens, output_tokens=reply.usage.completion_tokens),
    )
