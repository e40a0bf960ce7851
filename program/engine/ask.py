"""What the Engine is asked, and the request that it becomes: the profile applied, the server's habits heeded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coda.errors import UsageError
from coda.program.engine.profiles import Effort, Profile
from coda.program.engine.server import TOKENS_PER_CHARACTER, Habits

TEMPLATE_TOKENS = 256
"""Most that a chat template adds to a prompt. (GPT-OSS's own system message has about 80 tokens, Llama 3's 25.)"""

LEAST_TOKENS = 64
"""No reply is limited to fewer tokens for the context's sake."""

_OURS = frozenset(
    {"n", "num_generations", "cache", "rollout_id", "num_retries", "prompt_cache", "max_completion_tokens"}
)
_CONNECTION = frozenset(
    {"api_key", "api_base", "base_url", "api_version", "headers", "extra_headers", "extra_query", "model", "timeout"}
)


@dataclass(frozen=True)
class Ask:
    """A request in OpenAI's terms, as the program means it.

    Attributes:
        messages: Role and content of each.
        parameters: Temperature, token limit and the like; ``None`` is left to the profile.
        rollout: Tells apart samples of the same request.
    """

    messages: Sequence[dict[str, Any]]
    parameters: dict[str, Any] = field(default_factory=dict)
    rollout: int | None = None

    @classmethod
    def of(cls, prompt: str | None, messages: Any, options: dict[str, Any]) -> Ask:
        """Make one of what a `dspy.LM` is called with.

        Raises:
            UsageError: An option has a value that it cannot have, or would redirect the request: a program that was
                loaded from a file must not do that.
        """
        if not _CONNECTION.isdisjoint(options):
            found = ", ".join(sorted(_CONNECTION & options.keys()))
            raise UsageError(f"A program may not set {found} for a request. Set it in EngineConfig, or --api-base.")
        parameters = {name: value for name, value in options.items() if value is not None and name not in _OURS}
        if "max_tokens" not in parameters and options.get("max_completion_tokens") is not None:
            parameters["max_tokens"] = options["max_completion_tokens"]
        _check_number("max_tokens", parameters.get("max_tokens", 1), least=1)
        _check_number("temperature", parameters.get("temperature", 0), least=0)
        return cls(messages or [{"role": "user", "content": prompt or ""}], parameters, options.get("rollout_id"))


@dataclass(frozen=True)
class Draft:
    """How an `Ask` is put to the server; what did not work is changed from draft to draft.

    Attributes:
        ask: What is asked.
        effort: The level of effort.
        max_tokens: The limit of the reply, thinking included; ``None`` for what ask and profile say.
        examples: Whether the examples (earlier turns) are in it.
        redraw: How often a reply could not be used: each time another seed is tried.
    """

    ask: Ask
    effort: Effort
    max_tokens: int | None = None
    examples: bool = True
    redraw: int = 0


def render(draft: Draft, profile: Profile, seed: int | None) -> dict[str, Any]:
    """The body of the request, without the model's name."""
    asked = dict(draft.ask.parameters)
    extra = asked.pop("extra_body", None) or {}
    if profile.efforts:
        asked.pop("reasoning_effort", None)  # the draft's level says it in the family's way
    body: dict[str, Any] = {
        "messages": _messages(draft, profile),
        **profile.parameters,
        **draft.effort.parameters,
        **asked,
        **extra,
    }
    if isinstance(body.get("response_format"), type):
        body["response_format"] = _schema(body["response_format"])
    _set_temperature(body, profile)
    if seed is not None:
        body.setdefault("seed", _seed(seed, draft.ask.rollout, draft.redraw))
    body.pop("max_tokens", None)
    body[profile.max_tokens_name] = draft.max_tokens or _max_tokens(draft, profile)
    return body


def adapt(body: dict[str, Any], habits: Habits, draft: Draft) -> dict[str, Any]:
    """The body without what the server does not take, and with a limit that fits its context."""
    adapted = {
        habits.renamed.get(name, name): value
        for name, value in body.items()
        if name not in habits.dropped and value is not None
    }
    if habits.context is not None and draft.max_tokens is None:
        room = _room(habits.context, body["messages"], habits.tokens_per_character)
        for name in ("max_tokens", "max_completion_tokens"):
            if name in adapted:
                adapted[name] = min(adapted[name], room)
    return adapted


def encode(body: dict[str, Any]) -> bytes:
    """A body as it is sent. Halves of characters, which nothing can receive, become question marks.

    Raises:
        UsageError: An option is nothing that JSON can hold.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"A request's options cannot be sent as JSON: {error}.") from error
    return text.encode("utf-8", "replace")


def most_prompt_tokens(body: bytes) -> int:
    """The most tokens that a prompt can have: no token is shorter than a byte."""
    return len(body) + TEMPLATE_TOKENS


def digest(address: str, model: str, body: bytes, rollout: int | None) -> str:
    """What tells a request from all others: everything that is sent, where, and which sample it is."""
    return hashlib.sha256(b"\0".join((address.encode(), model.encode(), str(rollout).encode(), body))).hexdigest()


def _check_number(name: str, value: Any, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < float("inf"):
        raise UsageError(f"{name}={value!r}: give a number of at least {least:g}.")


def _messages(draft: Draft, profile: Profile) -> list[dict[str, Any]]:
    messages = list(draft.ask.messages)
    if not draft.examples:
        messages = [message for message in messages if message.get("role") == "system"] + messages[-1:]
    if not profile.system_role:
        messages = _without_system(messages)
    if draft.effort.suffix and isinstance(messages[-1].get("content"), str):
        messages[-1] = {**messages[-1], "content": messages[-1]["content"] + draft.effort.suffix}
    return messages


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put what the system message says before what the first user message says."""
    said = [message["content"] for message in messages if message.get("role") == "system"]
    others = [message for message in messages if message.get("role") != "system"]
    if not said or not others or not all(isinstance(text, str) for text in (*said, others[0].get("content"))):
        return messages
    return [{**others[0], "content": "\n\n".join([*said, others[0]["content"]])}, *others[1:]]


def _set_temperature(body: dict[str, Any], profile: Profile) -> None:
    temperature = body.get("temperature", profile.temperature)
    if not profile.takes_temperature or temperature is None:
        body.pop("temperature", None)
    else:
        body["temperature"] = max(temperature, profile.lowest_temperature)


def _max_tokens(draft: Draft, profile: Profile) -> int:
    """The answer's tokens, plus room to think, as far as the context goes."""
    wanted = int(draft.ask.parameters.get("max_tokens") or profile.max_tokens) + draft.effort.thinking_tokens
    return min(wanted, _room(profile.context, draft.ask.messages, TOKENS_PER_CHARACTER))


def limit_of(body: dict[str, Any]) -> int:
    """How many tokens a request allows the reply; 0 where it says nothing."""
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)


def characters(messages: Sequence[dict[str, Any]]) -> int:
    """How long a prompt is."""
    return sum(len(str(message.get("content"))) for message in messages)


def _room(context: int, messages: Sequence[dict[str, Any]], tokens_per_character: float) -> int:
    """About how many tokens a prompt leaves for the reply."""
    return max(context - int(characters(messages) * tokens_per_character) - TEMPLATE_TOKENS, LEAST_TOKENS)


def _seed(seed: int, rollout: int | None, redraw: int) -> int:
    """A seed of its own for every sample, the same in every run."""
    name = f"{seed}/{rollout}" + (f"/{redraw}" if redraw else "")
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1


def _schema(model: Any) -> dict[str, Any]:
    """A pydantic model as the server takes it."""
    return {
        "type": "json_schema",
        "json_schema": {"name": model.__name__, "schema": model.model_json_schema(), "strict": True},
    }
