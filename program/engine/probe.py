"""Finds out what a server supports, with about ten small requests, and which profile suits the model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal, get_args

import dspy
from dspy.utils.exceptions import AdapterParseError

from coda.errors import EngineError
from coda.program.concurrency import on_background_loop
from coda.program.engine.ask import Ask
from coda.program.engine.config import EngineConfig
from coda.program.engine.engine import Engine
from coda.program.engine.ledger import Ledger
from coda.program.engine.profiles import Profile, load_profile, profile_for
from coda.program.engine.replies import Reply, ThinkingPlace
from coda.program.settings import AdapterStyle
from coda.program.types import Frozen, Usage

ROOM = 2048
"""Tokens that a reply may take; models that think need most of them."""

Answer = Literal["yes", "no", "rejected"]
"""Whether a parameter had its effect, had none, or was refused."""


class Findings(Frozen):
    """What was found out.

    Example:
        >>> findings = await probe(EngineConfig(model="embedded"))  # doctest: +SKIP
        >>> findings.adapters  # doctest: +SKIP
        ('plain',)
    """

    model: str
    answers: bool
    """Whether it answered a plain question."""
    thinking: ThinkingPlace = "none"
    """Where it shows its thinking."""
    seconds: float = 0.0
    tokens_per_second: float = 0.0
    context: int | None = None
    """Tokens of prompt and reply together, where the server tells."""
    rejected: tuple[str, ...] = ()
    """Parameters that the server refuses."""
    renamed: Mapping[str, str] = {}
    """Parameters that it wants under another name."""
    seed: Answer = "no"
    """Whether the same seed gave the same reply twice, at temperature 1."""
    logprobs: Answer = "no"
    effort: Answer = "no"
    """Whether it thought less at ``reasoning_effort = "low"`` than at ``"high"``."""
    thinking_switch: Answer = "no"
    """Whether ``enable_thinking = false`` in the chat template's arguments stopped the thinking."""
    adapters: tuple[AdapterStyle, ...] = ()
    """Adapter styles whose format the model kept to."""
    profile: str = "generic"
    """The profile that its name leads to."""
    conflicts: tuple[str, ...] = ()
    """Where that profile and the findings do not agree."""
    usage: Usage = Usage()
    """What the probe cost."""

    def as_toml(self) -> str:
        """The findings as a profile to start from."""
        thinking = {"field": "field", "none": "none"}.get(self.thinking, "tags")
        lines = [
            f'name = "{self.model.rpartition("/")[2]}"',
            f'thinking = "{thinking}"',
            *([f"context = {self.context}"] if self.context else []),
            *(['max_tokens_name = "max_completion_tokens"'] if "max_tokens" in self.renamed else []),
            *(["takes_temperature = false"] if "temperature" in self.rejected else []),
            "",
            "[stages]",
            *([f'adapter = "{self.adapters[0]}"'] if self.adapters else []),
            f"written_reasoning = {str(self.thinking == 'none').lower()}",
        ]
        return "\n".join(lines) + "\n"


class Capital(dspy.Signature):
    """Name the capital of the country."""

    country: str = dspy.InputField()
    reason: str = dspy.OutputField(desc="one short sentence")
    capital: str = dspy.OutputField()


async def probe(config: EngineConfig, *, ledger: Ledger | None = None) -> Findings:
    """Ask a server what it supports.

    Args:
        config: The Engine; its profile is not applied.
        ledger: Where the requests are recorded.

    Raises:
        UsageError: It cannot be asked at all; see `Engine.acheck`.
        EngineError: It answers, and refuses.
    """
    plain = config.model_copy(update={"profile": "generic", "effort": None, "cache_dir": None, "max_retries": 1})
    engine = Engine(plain, ledger=ledger)
    engine.profile = engine.profile.model_copy(update={"longer_once": False})
    try:
        await engine.acheck()
        profile = load_profile(config.profile) if config.profile else profile_for(config.model)
        return await on_background_loop(_probe(engine, profile))
    finally:
        await engine.aclose()


async def _probe(engine: Engine, profile: Profile) -> Findings:
    started = time.monotonic()
    hello = await _ask(engine, "What is 17 + 25? Answer with the number alone.", temperature=0.0)
    seconds = time.monotonic() - started
    place: ThinkingPlace = hello.thinking_in if hello is not None else "none"
    effort = await _effort(engine, hello)
    seed, logprobs, switch = await _seed(engine), await _logprobs(engine), await _switch(engine, place)
    adapters = [style for style in get_args(AdapterStyle) if await _parses(engine, style)]
    habits = (await engine.transport.open()).habits(engine.config.model)
    findings = Findings(
        model=engine.config.model,
        answers=hello is not None and "42" in hello.text,
        thinking=place,
        seconds=round(seconds, 2),
        tokens_per_second=round(hello.usage.completion_tokens / seconds, 1) if hello is not None else 0.0,
        context=habits.context or await engine.transport.context(),
        rejected=tuple(sorted(habits.dropped)),
        renamed=dict(habits.renamed),
        seed=seed,
        logprobs=logprobs,
        effort=effort,
        thinking_switch=switch,
        adapters=tuple(adapters),
        profile=profile.name,
        usage=engine.ledger.totals(),
    )
    return findings.model_copy(update={"conflicts": _conflicts(findings, profile)})


async def _ask(engine: Engine, prompt: str | list[dict[str, Any]], **options: Any) -> Reply | None:
    """Ask once; ``None`` where the Engine could not answer that."""
    text, messages = (prompt, None) if isinstance(prompt, str) else (None, prompt)
    try:
        return await engine.ask(Ask.of(text, messages, {"max_tokens": ROOM, **options}))
    except EngineError as error:
        if error.kind in ("auth", "billing", "unknown-model", "connection", "configuration"):
            raise
        return None


async def _effort(engine: Engine, hello: Reply | None) -> Answer:
    question = "How many prime numbers are there below 60? Answer with the number alone."
    low = await _ask(engine, question, reasoning_effort="low", temperature=0.0)
    if await _rejects(engine, "reasoning_effort"):
        return "rejected"
    high = await _ask(engine, question, reasoning_effort="high", temperature=0.0)
    thinks = hello is not None and (hello.thinking_in != "none" or hello.usage.reasoning_tokens > 0)
    if not thinks or low is None or high is None:
        return "no"
    return "yes" if low.usage.completion_tokens < 0.8 * high.usage.completion_tokens else "no"


async def _seed(engine: Engine) -> Answer:
    request = {"temperature": 1.0, "seed": 20, "max_tokens": 64}
    replies = [await _ask(engine, "Write five random words.", rollout_id=sample, **request) for sample in (1, 2)]
    if await _rejects(engine, "seed"):
        return "rejected"
    texts = {(reply.text, reply.thinking) for reply in replies if reply is not None}
    return "yes" if None not in replies and len(texts) == 1 else "no"


async def _logprobs(engine: Engine) -> Answer:
    reply = await _ask(engine, "Say yes.", logprobs=True, max_tokens=64)
    if await _rejects(engine, "logprobs"):
        return "rejected"
    return "yes" if reply is not None and reply.logprobs else "no"


async def _switch(engine: Engine, place: ThinkingPlace) -> Answer:
    if place == "none":
        return "no"
    reply = await _ask(engine, "What is 18 + 25?", chat_template_kwargs={"enable_thinking": False})
    if await _rejects(engine, "chat_template_kwargs"):
        return "rejected"
    return "yes" if reply is not None and reply.thinking_in == "none" else "no"


async def _rejects(engine: Engine, parameter: str) -> bool:
    return parameter in (await engine.transport.open()).habits(engine.config.model).dropped


async def _parses(engine: Engine, style: AdapterStyle) -> bool:
    """Whether the model keeps to a style's format, without anything having to be salvaged."""
    from coda.program.adapters import SALVAGED, adapter_for

    adapter = adapter_for(style)
    reply = await _ask(engine, adapter.format(Capital, [], {"country": "France"}), temperature=0.0)
    if reply is None or not reply.text:
        return False
    try:
        fields = adapter.parse(Capital, reply.text)
    except AdapterParseError:
        return False
    return SALVAGED not in fields and "paris" in str(fields["capital"]).lower()


def _conflicts(findings: Findings, profile: Profile) -> tuple[str, ...]:
    """Where a profile expects something else than was found."""
    found = []
    thinks = profile.level(None).thinking_tokens > 0
    if thinks and findings.thinking == "none":
        found.append(f"profile {profile.name} expects thinking, and none was seen")
    if profile.thinking == "none" and findings.thinking != "none":
        found.append(f"profile {profile.name} expects no thinking, and it was seen in: {findings.thinking}")
    if findings.context is not None and findings.context < profile.context:
        found.append(f"the server's context is {findings.context} tokens, the profile's {profile.context}")
    adapter = profile.settings().adapter
    if findings.adapters and adapter not in findings.adapters:
        found.append(f"adapter style {adapter} does not parse; {findings.adapters[0]} does")
    return tuple(found)
