"""A real HTTP server on the loopback interface that speaks OpenAI's chat completions, with their faults, and counts.

In a test:

    with LocalEngine(["42", Answer("43", finish="length")], faults=[RATE_LIMIT, None]) as engine:
        ...  # engine.api_base, engine.requests, engine.prompt_tokens, engine.bodies

As a process: ``python tests/support/local_engine.py --port 8000 --latency 0.2``.

It is written on sockets, not on a web framework, for two reasons: the faults need control over every byte, and the
counts must be exact. A request counts when the last byte of it has been read. The tokens of a reply count when the
reply is written, which happens only to a client that has not closed its side of the connection by then; a client that
gives a request up by closing its *sending* side, and reads on, therefore always agrees with these counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    """A reply: its text, what the Engine thought, why it stopped, and what it says that it cost."""

    text: str | None = ""
    reasoning: str | None = None
    reasoning_field: str = "reasoning_content"
    finish: str | None = None
    """``None``: ``stop``, or ``length`` where ``max_tokens`` cut the text."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    latency: float | None = None


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a request in place of an answer, or on the way of it (``reset``, ``hang``)."""

    kind: str
    status: int = 200
    error: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    answer: Answer | None = None
    seconds: float = 0.0

    def with_headers(self, **headers: str) -> Fault:
        """The same fault with more headers; underscores stand for hyphens."""
        return replace(self, headers={**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})


def refusal(status: int, message: str, **details: Any) -> Fault:
    """An error with a status and an OpenAI error object."""
    return Fault(f"status {status}", status=status, error={"message": message, **details})


def unknown_parameter(name: str) -> Fault:
    """The server does not take a parameter."""
    return refusal(
        400, f"Unrecognized request argument supplied: {name}", type="invalid_request_error", param=name, code=None
    )


def hang(seconds: float = 3600.0) -> Fault:
    """The request is read, and no answer comes."""
    return Fault("hang", seconds=seconds)


def garbage(raw: bytes) -> Fault:
    """These bytes are the body."""
    return Fault("garbage", raw=raw)


def noise(raw: bytes) -> Fault:
    """These bytes are sent in place of HTTP, and the connection is closed."""
    return Fault("noise", raw=raw)


RATE_LIMIT = refusal(429, "Rate limit reached.", type="requests", code="rate_limit_exceeded")
RATE_LIMIT_1S = RATE_LIMIT.with_headers(Retry_After="1")
QUOTA = refusal(429, "You exceeded your current quota.", type="insufficient_quota", code="insufficient_quota")
SERVER_ERROR = refusal(500, "The server had an error.", type="server_error")
BAD_GATEWAY = Fault("status 502", status=502, raw=b"<html><body><h1>502 Bad Gateway</h1></body></html>")
UNAVAILABLE = refusal(503, "The server is overloaded.", type="server_error")
RESET = Fault("reset")
ERROR_BODY = Fault("error body", error={"message": "Provider returned error", "code": 502})
NULL_CONTENT = Fault("null content", answer=Answer(text=None))
EMPTY = Fault("empty", answer=Answer(text=""))
INVALID_JSON = garbage(b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assi')
FILTERED = Fault("content filter", answer=Answer(text="", finish="content_filter"))
FILTERED_PROMPT = refusal(400, "The prompt triggered a content filter.", code="content_filter", param="prompt")
CONTEXT_OVERFLOW = refusal(
    400,
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4800 in the messages, "
    "200 in the completion). Please reduce the length of the messages or completion.",
    type="invalid_request_error",
    param="messages",
    code="context_length_exceeded",
)
UNAUTHORIZED = refusal(401, "Incorrect API key provided.", type="invalid_request_error", code="invalid_api_key")

Script = str | Answer | Sequence[str | Answer] | Callable[[Messages], str | Answer]
Faults = Sequence[Fault | None] | Callable[[int, dict[str, Any]], Fault | None]


def count_tokens(text: str | None) -> int:
    """The server's tokens: words with the space after them."""
    return len(re.findall(r"\S+", text or ""))


class LocalEngine:
    """The server, in a thread of its own.

    Args:
        script: What it answers: one text, a list of them (the last one repeats), or a function of the messages.
        faults: One for each request (``None``: all is well), or a function of the request's number and body.
        latency: Seconds from the end of a request to its answer.
        models: The models it knows; the first is its own.
        unknown: Parameters that it rejects, in every request.
        key: The key that it wants, if any; requests without it are not counted.
        keep: Whether to keep bodies and headers; a benchmark does not want them.
    """

    def __init__(
        self,
        script: Script = "ok",
        *,
        faults: Faults = (),
        latency: float = 0.0,
        models: Sequence[str] = ("test-model",),
        unknown: Sequence[str] = (),
        key: str | None = None,
        keep: bool = True,
    ) -> None:
        self.script = script
        self.faults = faults
        self.latency = latency
        self.models = tuple(models)
        self.unknown = tuple(unknown)
        self.key = key
        self.keep = keep
        self.details: dict[str, Any] = {}
        self.requests = 0
        self.answers = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.reasoning_tokens = 0
        self.abandoned = 0
        self.connections = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.times: list[float] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.api_base = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    # -- life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, port: int = 0) -> None:
        """Listen, in a thread."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.listen(port), self._loop).result()

    def stop(self) -> None:
        """Cut all connections and end the thread."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def listen(self, port: int = 0) -> None:
        """Listen on the running loop."""
        loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

        def protocol() -> asyncio.StreamReaderProtocol:
            reader = _Reader(limit=2**20, loop=loop)
            return asyncio.StreamReaderProtocol(reader, self._connected, loop=loop)

        self._server = await loop.create_server(protocol, "127.0.0.1", port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]
        self.api_base = f"http://127.0.0.1:{self.port}/v1"

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0)  # connections that were accepted a moment ago have their tasks now
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- HTTP

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: Any, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                request, *lines = head.split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = request.split(" ", 2)
                if not await self._answer(method, path.partition("?")[0], headers, body, reader, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes, reader: Any, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection goes on."""
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return _write(writer, 401, {"error": UNAUTHORIZED.error})
        if (method, path) == ("GET", "/v1/models"):
            listed = [{"id": name, "object": "model", "owned_by": "tests", **self.details} for name in self.models]
            return _write(writer, 200, {"object": "list", "data": listed})
        if (method, path) != ("POST", "/v1/chat/completions"):
            return _write(writer, 404, {"error": {"message": f"no such path: {path}"}})
        self.requests += 1
        number = self.requests
        self.times.append(time.monotonic())
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            return await self._complete(number, json.loads(body), headers, reader, writer)
        finally:
            self.in_flight -= 1

    async def _complete(
        self, number: int, body: dict[str, Any], headers: dict[str, str], reader: Any, writer: asyncio.StreamWriter
    ) -> bool:
        if self.keep:
            self.bodies.append(body)
            self.headers.append(headers)
        fault = self._fault(number, body)
        answer = self._script(body["messages"]) if fault is None or fault.kind == "reset" else fault.answer
        latency = answer.latency if answer is not None and answer.latency is not None else self.latency
        seconds = fault.seconds if fault is not None and fault.kind == "hang" else latency
        if not await reader.still_there_after(seconds) or (fault is not None and fault.kind == "hang"):
            self.abandoned += 1
            return False
        if fault is not None and fault.kind == "reset":
            assert answer is not None
            return _reset(writer, self._document(number, body, answer))
        if fault is not None and fault.kind == "noise":
            writer.write(fault.raw or b"")
            return False
        if fault is not None and answer is None:
            return _write(writer, fault.status, fault.raw or {"error": fault.error}, fault.headers)
        assert answer is not None
        document = self._document(number, body, answer)
        self._count(document["usage"])
        return _write(writer, 200, document, fault.headers if fault is not None else {})

    # -- the model

    def _fault(self, number: int, body: dict[str, Any]) -> Fault | None:
        if body.get("model") not in self.models:
            return refusal(404, f"The model `{body.get('model')}` does not exist.", code="model_not_found")
        for name in self.unknown:
            if name in body:
                return unknown_parameter(name)
        if callable(self.faults):
            return self.faults(number, body)
        return self.faults[number - 1] if number <= len(self.faults) else None

    def _script(self, messages: Messages) -> Answer:
        script = self.script
        if callable(script):
            answer = script(messages)
        elif isinstance(script, (str, Answer)):
            answer = script
        else:
            answer = script[min(self.answers, len(script) - 1)]
        self.answers += 1
        return answer if isinstance(answer, Answer) else Answer(answer)

    def _document(self, number: int, body: dict[str, Any], answer: Answer) -> dict[str, Any]:
        text, finish = answer.text, answer.finish
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        if finish is None:
            finish = "stop"
            if limit is not None and count_tokens(text) > limit:
                text = "".join(re.findall(r"\s*\S+", text or "")[:limit])
                finish = "length"
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if answer.reasoning is not None:
            message[answer.reasoning_field] = answer.reasoning
        thought = answer.reasoning_tokens if answer.reasoning_tokens is not None else count_tokens(answer.reasoning)
        prompt = answer.prompt_tokens
        if prompt is None:
            prompt = sum(count_tokens(_text(message)) + 1 for message in body["messages"])
        completion = answer.completion_tokens
        if completion is None:
            completion = count_tokens(text) + thought
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        if thought:
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        if answer.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": answer.cached_tokens}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        }

    def _count(self, usage: dict[str, Any]) -> None:
        self.prompt_tokens += usage["prompt_tokens"]
        self.completion_tokens += usage["completion_tokens"]
        self.reasoning_tokens += usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0)


class _Reader(asyncio.StreamReader):
    """A reader that tells at once when the client has closed its side."""

    waiting: asyncio.Future[None] | None = None

    def feed_eof(self) -> None:
        super().feed_eof()
        self._wake()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._wake()

    def _wake(self) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)

    async def still_there_after(self, seconds: float) -> bool:
        """Wait so long, or until the client closes; whether it has not."""
        if seconds > 0 and not self.at_eof() and self.exception() is None:
            loop = asyncio.get_running_loop()
            self.waiting = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self.waiting
            finally:
                timer.cancel()
                self.waiting = None
        return not self.at_eof() and self.exception() is None


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def _head(status: int, length: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", "Content-Type: application/json", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _write(
    writer: asyncio.StreamWriter, status: int, body: dict[str, Any] | bytes, headers: dict[str, str] | None = None
) -> bool:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    writer.write(_head(status, len(content), headers or {}) + content)
    return True


def _reset(writer: asyncio.StreamWriter, document: dict[str, Any]) -> bool:
    content = json.dumps(document).encode()
    writer.write(_head(200, len(content), {}) + content[: len(content) // 2])
    writer.transport.abort()
    return False


async def _serve(arguments: argparse.Namespace) -> None:
    engine = LocalEngine(arguments.reply, latency=arguments.latency, models=[arguments.model], keep=False)
    await engine.listen(arguments.port)
    print(engine.api_base, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(json.dumps({"requests": engine.requests, "max_in_flight": engine.max_in_flight}), flush=True)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description="An Engine for tests, on the loopback interface.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--reply", default="[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]")
    parser.add_argument("--model", default="test-model")
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
