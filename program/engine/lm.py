"""The LM that DSPy sees: an ordinary `dspy.LM` to predictors and optimizers, behind which the Engine does the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, ThinkingPart
from dspy.lm15 import Usage as WireUsage
from dspy.utils.callback import with_callbacks

from coda.program.concurrency import run_sync
from coda.program.engine.ask import Ask
from coda.program.engine.config import EngineConfig
from coda.program.engine.replies import Reply

if TYPE_CHECKING:
    from coda.program.engine.engine import Engine


class EngineLM(dspy.LM):
    """A `dspy.LM` whose copies, deep ones too, all ask one Engine.

    Ordinary calls take a short way: DSPy's own hops through a thread pool three times for each, and looks the price of
    every reply up. Calls with an explicit `dspy.lm15.Request` go DSPy's way, through the engine hooks below.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(
            engine.config.model, engine=SyncDoor(engine), async_engine=AsyncDoor(engine), cache=False, num_retries=0
        )
        self.coda = engine

    @with_callbacks  # type: ignore[untyped-decorator]
    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask and wait."""
        return run_sync(self._answer(prompt, messages, options))

    @with_callbacks  # type: ignore[untyped-decorator]
    async def acall(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        """Ask."""
        return await self._answer(prompt, messages, options)

    async def _answer(self, prompt: Any, messages: Any, options: dict[str, Any]) -> Any:
        if isinstance(prompt, Request) or options.get("request") is not None:
            return await answer(self.coda, prompt if isinstance(prompt, Request) else options["request"])
        merged = {**self.kwargs, **options}
        samples = int(merged.get("n") or 1)
        asks = [Ask.of(prompt, messages, _sample(merged, index, samples)) for index in range(samples)]
        replies = [await self.coda.ask(asks[0])] if samples == 1 else await asyncio.gather(*map(self.coda.ask, asks))
        tracker = dspy.settings.usage_tracker
        if tracker:
            for reply in replies:
                tracker.add_usage(self.model, _usage(reply))
        return [
            {"text": reply.text, "reasoning_content": reply.thinking} if reply.thinking else reply.text
            for reply in replies
        ]

    def update_history(self, entry: dict[str, Any]) -> None:
        """Keep none: the ledger has what matters, and thousands of prompts would stay in memory."""

    @property
    def supports_function_calling(self) -> bool:
        """Tools are the Conductor's business: the Engine only writes text."""
        return False

    @property
    def supports_reasoning(self) -> bool:
        """How it thinks is the profile's business."""
        return False

    @property
    def supports_response_schema(self) -> bool:
        """Servers differ too much in how they enforce a schema."""
        return False

    @property
    def supported_params(self) -> set[str]:
        """Parameters that adapters may set; servers that reject one are remembered."""
        return {"temperature", "max_tokens", "top_p", "stop", "seed"}

    def dump_state(self) -> dict[str, Any]:
        """What a saved program needs to make this LM again; no key is in it."""
        state: dict[str, Any] = super(dspy.LM, self).dump_state()
        return {**state, "config": self.coda.config.model_dump(mode="json")}

    @classmethod
    def load_state(cls, state: dict[str, Any], *, allow_custom_lm_class: bool = False) -> Self:
        """Make an LM with an Engine of its own."""
        from coda.program.engine.engine import Engine

        ours = {"_dspy_lm_class", "model", "model_type", "cache", "num_retries", "config"}
        lm = cls(Engine(EngineConfig.model_validate(state["config"])))
        lm.kwargs.update({name: value for name, value in state.items() if name not in ours})
        return lm


class _Door:
    """The engine hook of `dspy.LM`; deep copies of it lead to the same Engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class AsyncDoor(_Door):
    """Answers explicit requests."""

    async def complete(self, request: Request) -> Response:
        """Answer a request."""
        return await answer(self.engine, request)


class SyncDoor(_Door):
    """Answers explicit requests of synchronous callers."""

    def complete(self, request: Request) -> Response:
        """Answer a request and wait for it."""
        return run_sync(answer(self.engine, request))


async def answer(engine: Engine, request: Request) -> Response:
    """Answer one of DSPy's canonical requests."""
    from dspy.clients.lm15_boundary import request_kwargs

    options = request_kwargs(request, "chat")
    messages = options.pop("messages")
    reply = await engine.ask(Ask.of(None, messages, options))
    usage = reply.usage
    thinking = [ThinkingPart(reply.thinking)] if reply.thinking else []
    return Response(
        id=None,
        model=request.model,
        message=Message(role="assistant", parts=(*thinking, TextPart(reply.text))),
        finish_reason=reply.finish if reply.finish in ("stop", "length", "content_filter") else "stop",
        usage=WireUsage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            reasoning_tokens=usage.reasoning_tokens or None,
        ),
    )


def _sample(options: Mapping[str, Any], index: int, samples: int) -> dict[str, Any]:
    """One of several samples: a rollout of its own, so that it is a request of its own."""
    if samples == 1:
        return dict(options)
    return {**options, "rollout_id": int(options.get("rollout_id") or 0) * 1000 + index}


def _usage(reply: Reply) -> dict[str, Any]:
    """Usage as DSPy's tracker wants it."""
    usage = reply.usage
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
