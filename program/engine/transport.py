"""How requests reach a model: OpenAI's protocol over HTTP."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Protocol

import aiohttp

from coda.errors import EngineError, FaultKind, UsageError
from coda.program.concurrency import in_default_pool
from coda.program.engine.config import EngineConfig
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.types import Usage

_KINDS: dict[int, FaultKind] = {401: "auth", 403: "auth", 402: "billing", 404: "unknown-model", 408: "timeout", 429: "rate-limit"}


class Transport(Protocol):
    """A way to a model."""

    local: bool

    async def check(self) -> None: ...

    async def send(self, body: dict[str, Any], profile: Profile) -> Reply: ...

    async def aclose(self) -> None: ...


def open_transport(config: EngineConfig) -> Transport:
    """The transport that a configuration asks for."""
    return HttpTransport(config)


class HttpTransport:
    """Any OpenAI-compatible server, the embedded one included."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.local = config.model == "embedded" or config.model.endswith(".gguf")
        self._session: aiohttp.ClientSession | None = None

    async def _address(self) -> tuple[str, str]:
        if self.local:
            from coda.program.engine.local import embedded_server

            server = await in_default_pool(embedded_server, self.config.model)
            return server.api_base, server.model
        if not self.config.api_base:
            raise UsageError(f"--model {self.config.model} needs --api-base, the address of its server.")
        return self.config.api_base.rstrip("/"), self.config.model.removeprefix("openai/")

    def _headers(self) -> dict[str, str]:
        variable = self.config.api_key_env
        if variable is None:
            return {}
        if not os.environ.get(variable):
            raise UsageError(f"--api-key-env {variable}: the variable is not set. Export it with your key.")
        return {"Authorization": f"Bearer {os.environ[variable]}"}

    async def check(self) -> None:
        base, model = await self._address()
        try:
            async with self._client().get(f"{base}/models", headers=self._headers()) as reply:
                if reply.status in (401, 403):
                    raise EngineError(f"{base} refuses the key ({reply.status}). Check --api-key-env.", kind="auth")
                known = [item["id"] for item in (await reply.json(content_type=None))["data"]]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise UsageError(f"Nothing answers at {base} ({error}). Is the server running? Check --api-base.") from error
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{base} is no OpenAI-compatible server: /models gives no list. Check --api-base.") from error
        if known and model not in known:
            raise UsageError(f"{base} has no model {model!r}. It serves: {', '.join(known[:10])}.")

    async def send(self, body: dict[str, Any], profile: Profile) -> Reply:
        base, model = await self._address()
        try:
            async with self._client().post(
                f"{base}/chat/completions", json={"model": model, **body}, headers=self._headers()
            ) as reply:
                raw = await reply.read()
        except aiohttp.ClientError as error:
            raise EngineError(f"{base}: {error or type(error).__name__}.", kind="connection") from error
        if reply.status != 200:
            wait = reply.headers.get("Retry-After", "")
            kind = _KINDS.get(reply.status, "server" if reply.status >= 500 else "bad-request")
            raise EngineError(
                f"{base} answered {reply.status}: {raw[:300].decode('utf-8', 'replace')}",
                kind=kind,
                status=reply.status,
                retry_after=float(wait) if wait.isdigit() else None,
            )
        return read_reply(raw, base)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None, connect=30)
            )
        return self._session

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def read_reply(raw: bytes, where: str) -> Reply:
    """Read a chat completion; thinking is taken out of the text."""
    try:
        document = json.loads(raw)
        choice = document["choices"][0]
        message = choice["message"]
        used = document.get("usage") or {}
        text = message.get("content") or ""
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise EngineError(f"{where} sent something that is no chat completion: {raw[:200]!r}", kind="bad-reply") from error
    thinking = message.get("reasoning_content") or message.get("reasoning") or ""
    head, mark, tail = text.rpartition("</think>")
    if mark:
        thinking, text = thinking or re.sub(r"^\s*<think>", "", head), tail
    elif text.lstrip().startswith("<think>"):
        thinking, text = text, ""
    usage = Usage(
        calls=1,
        prompt_tokens=int(used.get("prompt_tokens") or 0),
        completion_tokens=int(used.get("completion_tokens") or 0),
    )
    return Reply(text.strip(), thinking.strip(), choice.get("finish_reason") or "stop", usage)
