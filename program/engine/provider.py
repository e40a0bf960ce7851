"""Any other model that DSPy knows: through DSPy's own engines, one attempt per request, none of their retries."""

from __future__ import annotations

import os
from typing import Any

import dspy
from dspy.lm15 import Response, TextPart, ThinkingPart, request_from_openai_chat
from dspy.utils import exceptions as faults

from coda.errors import EngineError, FaultKind, UsageError
from coda.program.engine.cleaning import split_thinking
from coda.program.engine.config import EngineConfig
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.engine.server import Server, server_at
from coda.program.engine.transport import Exchange, Outgoing
from coda.program.engine.wire import checked
from coda.program.types import Usage

KINDS: dict[type[faults.LMError], FaultKind] = {
    faults.ContextWindowExceededError: "context",
    faults.LMAuthError: "auth",
    faults.LMBillingError: "billing",
    faults.LMCollectionLimitError: "unexpected",
    faults.LMConfigurationError: "configuration",
    faults.LMError: "unexpected",
    faults.LMInvalidRequestError: "bad-request",
    faults.LMLockTimeoutError: "timeout",
    faults.LMNotConfiguredError: "auth",
    faults.LMProviderError: "server",
    faults.LMRateLimitError: "rate-limit",
    faults.LMServerError: "server",
    faults.LMStreamAssemblyError: "bad-reply",
    faults.LMTimeoutError: "timeout",
    faults.LMTransportError: "connection",
    faults.LMUnexpectedError: "unexpected",
    faults.LMUnsupportedFeatureError: "bad-request",
    faults.LMUnsupportedModelError: "unknown-model",
}
"""What each of DSPy's errors is to us."""


class ProviderTransport:
    """A `dspy.LM` of DSPy's own, used for its connection alone.

    Args:
        config: Which model, where.

    Raises:
        UsageError: DSPy does not know such a model.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.address = config.api_base or config.model.partition("/")[0]
        self._server = server_at(self.address)
        self._lm: Any = None
        if "/" not in config.model:
            raise UsageError(
                f"--model {config.model}: no such model. Give embedded, a GGUF file, openai/NAME with --api-base, "
                "or PROVIDER/NAME as DSPy has it."
            )

    async def open(self) -> Server:
        """The provider; nothing is started."""
        return self._server

    async def check(self) -> None:
        """Make sure that the key's variable is set; nothing else can be known without paying for it."""
        self._connect()

    async def context(self) -> int | None:
        """Unknown."""
        return None

    async def send(self, request: Outgoing, exchange: Exchange, profile: Profile) -> Reply:
        """Send one request, once."""
        lm = self._connect()
        exchange.sent = True
        try:
            canonical = request_from_openai_chat({**request.body, "model": self.config.model})
            response = await lm.acall(request=canonical)
        except faults.LMError as error:
            raise as_engine_error(error) from error
        except (TypeError, ValueError) as error:
            raise EngineError(
                f"DSPy cannot put this request to {self.config.model}: {error}.", kind="bad-request"
            ) from error
        return _reply(response, profile, self.config.model)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._lm is not None:
            await self._lm.aclose()
            self._lm = None

    def _connect(self) -> Any:
        if self._lm is None:
            options: dict[str, Any] = {"timeout": self.config.timeout}
            if self.config.api_base is not None:
                options["api_base"] = self.config.api_base
            if self.config.api_key_env is not None:
                key = os.environ.get(self.config.api_key_env, "").strip()
                if not key:
                    raise UsageError(
                        f"The variable {self.config.api_key_env} holds no key for {self.config.model}. "
                        f"Set it: export {self.config.api_key_env}=…"
                    )
                options["api_key"] = key
            try:
                self._lm = dspy.LM(self.config.model, cache=False, num_retries=0, **options)
            except (faults.LMError, ValueError) as error:
                raise UsageError(f"--model {self.config.model}: {error}") from error
        return self._lm


def as_engine_error(error: faults.LMError) -> EngineError:
    """One of DSPy's errors as ours; an unknown class counts as the nearest known one above it."""
    kind = next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)
    hint = {"auth": " Check the key: name its variable with --api-key-env.", "unknown-model": " Check --model."}
    said = " ".join(str(error).partition("\n\n")[0].split())
    return EngineError(f"{said}{hint.get(kind, '')}", kind=kind, status=error.status, retry_after=error.retry_after)


def _reply(response: Response, profile: Profile, where: str) -> Reply:
    used = response.usage
    usage = Usage(
        calls=1,
        prompt_tokens=used.input_tokens or 0,
        completion_tokens=used.output_tokens or 0,
        reasoning_tokens=used.reasoning_tokens or 0,
    )
    shown = "".join(part.text or "" for part in response.message.parts if isinstance(part, ThinkingPart))
    said = "".join(part.text for part in response.message.parts if isinstance(part, TextPart))
    thinking, text = split_thinking(said, profile)
    reply = Reply(text.strip(), (shown or thinking).strip(), response.finish_reason, usage, used.cache_read_tokens or 0)
    return checked(reply, where)
