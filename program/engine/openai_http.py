"""OpenAI's protocol over HTTP: any compatible server, the embedded one included."""

from __future__ import annotations

import asyncio
import atexit
import ipaddress
import os
import weakref
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import aiohttp
from yarl import URL

from coda.errors import EngineError, UsageError
from coda.program.concurrency import in_default_pool, run_sync
from coda.program.engine import wire
from coda.program.engine.config import EngineConfig
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.engine.server import Server, server_at
from coda.program.engine.transport import Exchange, Outgoing

OPENAI = "https://api.openai.com/v1"

MAX_BODY = 64 * 2**20
"""Bytes of a reply that are read at most."""

_exchange: ContextVar[Exchange | None] = ContextVar("coda_exchange", default=None)


class HttpTransport:
    """One pooled session on the background loop, as many connections as there are requests in flight.

    Args:
        config: Which model, where.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._base = ""
        self._model = config.model.removeprefix("openai/")
        self._session: aiohttp.ClientSession | None = None
        self._server: Server | None = None
        self._opening = asyncio.Lock()
        if not config.embedded:
            self._base = _address(config.api_base or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        self.address = self._base

    async def open(self) -> Server:
        """Find the server; the embedded one is started."""
        if self._server is not None:
            return self._server
        async with self._opening:
            if self._server is None:
                self._server = await self._start() if self.config.embedded else server_at(self._base)
                self._url = URL(f"{self._base}/chat/completions")
        return self._server

    async def check(self) -> None:
        """Make sure that a server answers, speaks the protocol, takes the key and knows the model."""
        await self.open()
        try:
            known = await self._models()
        except EngineError as error:
            if error.kind in ("connection", "configuration"):
                raise UsageError(str(error)) from error
            raise
        if known and not any(name == self._model or name.startswith(f"{self._model}:") for name in known):
            raise UsageError(
                f"{self._base} has no model {self._model!r}. It serves: {', '.join(known[:20])}. Check --model."
            )

    async def context(self) -> int | None:
        """Tokens of prompt and reply together, where the server's list of models tells."""
        return wire.read_context(await self._list(), self._model)

    async def send(self, request: Outgoing, exchange: Exchange, profile: Profile) -> Reply:
        """Send one request, once."""
        await self.open()
        headers = {"Content-Type": "application/json", **self._key()}
        content = b'{"model":' + wire.quoted(self._model) + b"," + request.content[1:]
        token = _exchange.set(exchange)
        try:
            status, answer_headers, raw = await self._exchange("POST", self._url, headers, content)
        finally:
            _exchange.reset(token)
        if status == 200:
            return wire.read_reply(raw, profile, thinks=request.thinks, where=self._base)
        error = wire.read_error(status, raw, answer_headers, self._base)
        raise await self._explained(error)

    async def aclose(self) -> None:
        """Close the connections; the embedded server goes on for others."""
        _open.discard(self)
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _start(self) -> Server:
        from coda.program.engine.local import embedded_server

        local = await in_default_pool(embedded_server, self.config.model)
        self._base, self._model = local.api_base, local.model
        server = server_at(self._base)
        server.habits(self.config.model).context = local.context_per_slot
        return server

    async def _exchange(
        self, method: str, url: URL, headers: dict[str, str], content: bytes | None = None
    ) -> tuple[int, Any, bytes]:
        try:
            async with self._client().request(
                method, url, data=content, headers=headers, allow_redirects=False
            ) as response:
                raw = await _read(response)
                return response.status, response.headers, raw
        except aiohttp.ClientConnectorError as error:
            self._forget()
            raise EngineError(
                f"Nothing answers at {self._base} ({error.strerror or error}). Is the server running? "
                "Check --api-base.",
                kind="connection",
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._forget()
            reason = str(error) or type(error).__name__
            raise EngineError(f"The connection to {self._base} broke: {reason}.", kind="connection") from error

    async def _models(self) -> list[str]:
        """The models that the server lists.

        Raises:
            EngineError: It is no OpenAI-compatible server, or does not answer as one.
        """
        known = wire.read_models(await self._list())
        if known is None:
            raise EngineError(
                f"{self._base} is no OpenAI-compatible server: it has no list of models at /models. "
                "Check --api-base; most end in /v1.",
                kind="configuration",
            )
        return known

    async def _list(self) -> bytes:
        status, headers, raw = await self._exchange("GET", URL(f"{self._base}/models"), self._key())
        if status not in (200, 404):
            raise await self._explained(wire.read_error(status, raw, headers, self._base))
        return raw

    async def _explained(self, error: EngineError) -> EngineError:
        """The same error, with what helps to mend it."""
        hint = ""
        if error.kind == "auth":
            variable = self.config.api_key_env
            hint = (
                f" Check the key in {variable}."
                if variable
                else " It wants a key: name its variable with --api-key-env."
            )
        elif error.kind == "unknown-model":
            try:
                hint = f" It serves: {', '.join((await self._models())[:20])}."
            except EngineError:
                hint = " Check --model."
        elif error.kind == "configuration":
            hint = " Check --api-base; most end in /v1."
        return EngineError(f"{error}{hint}", kind=error.kind, status=error.status, retry_after=error.retry_after)

    def _key(self) -> dict[str, str]:
        variable = self.config.api_key_env
        if variable is None and self._base == OPENAI:
            variable = "OPENAI_API_KEY"
        if variable is None:
            return {}
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(f"The variable {variable} holds no key for {self._base}. Set it: export {variable}=…")
        if not key.isascii() or not key.isprintable():
            raise UsageError(f"The key in {variable} has characters that no key has. Set it anew.")
        return {"Authorization": f"Bearer {key}"}

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            _open.add(self)
            self._session = aiohttp.ClientSession(
                # Servers close idle connections after 5 s (uvicorn); those must not be taken for live ones.
                connector=_Connector(limit=0, keepalive_timeout=4.0),
                timeout=aiohttp.ClientTimeout(total=None, connect=30.0),
                trust_env=not _is_local(URL(self._base).host or ""),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _forget(self) -> None:
        """An embedded server that died is started again by the next request, at another address."""
        if self.config.embedded:
            self._server = None


_open: weakref.WeakSet[HttpTransport] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Close what nobody has closed: aiohttp complains on stderr of sessions that are left open."""
    for transport in list(_open):
        with suppress(Exception):  # the process ends anyway
            run_sync(transport.aclose())


class _Connector(aiohttp.TCPConnector):
    """Tells an exchange which connection it got."""

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        connection = await super().connect(*args, **kwargs)
        exchange = _exchange.get()
        if exchange is not None:
            exchange.connection, exchange.sent = connection, True
        return connection


async def _read(response: aiohttp.ClientResponse) -> bytes:
    if response.content_length is not None and response.content_length <= MAX_BODY:
        return await response.read()
    raw = bytearray()
    async for chunk in response.content.iter_any():
        raw += chunk
        if len(raw) > MAX_BODY:
            response.close()
            raise aiohttp.ClientPayloadError(f"a reply of more than {MAX_BODY >> 20} MB")
    return bytes(raw)


def _address(base: str) -> str:
    try:
        url = URL(base)
        usable = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"--api-base {base}: give an address such as http://127.0.0.1:8000/v1.")
    return base.rstrip("/")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
