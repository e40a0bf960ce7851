"""OpenAI's chat completions as bytes: what a server sent, read with the suspicion that it deserves.

Whatever the bytes are, what comes out is a `Reply`, or an `EngineError` that says what is wrong with them.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coda.errors import EngineError, FaultKind
from coda.program.engine.cleaning import split_thinking
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply, ThinkingPlace
from coda.program.types import Usage

MAX_TEXT = 400_000
"""Characters of an answer that are kept; no model means more than that."""

_KINDS: dict[int, FaultKind] = {
    401: "auth",
    402: "billing",
    403: "auth",
    408: "timeout",
    409: "server",
    413: "context",
    425: "server",
    429: "rate-limit",
}
_CONTEXT = re.compile(
    r"context.{0,12}(length|window|size)|maximum.context|exceed_context|too many (input )?tokens|"
    r"(prompt|input) is too long|reduce the length",
    re.IGNORECASE,
)
_CONTEXT_NAMES = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_QUOTA = re.compile(r"insufficient.quota|exceeded your current quota|billing|credit", re.IGNORECASE)
_FILTER = re.compile(r"content.?filter|content_policy|content management policy|moderation", re.IGNORECASE)
_MODEL = re.compile(
    r"model.{0,120}(not.found|not exist|does not exist|not available|unknown|not supported)", re.IGNORECASE
)


class UnusableReply(EngineError):
    """A reply that was paid for and cannot be used.

    Args:
        message: What is wrong with it.
        usage: What it cost.
        kind: ``bad-reply``, or ``content-filter``.
    """

    def __init__(self, message: str, usage: Usage, kind: FaultKind = "bad-reply") -> None:
        super().__init__(message, kind=kind, status=200)
        self.usage = usage


def read_reply(raw: bytes, profile: Profile, *, thinks: bool, where: str) -> Reply:
    """Read a chat completion.

    Args:
        raw: The body.
        profile: Says how the Engine shows its thinking.
        thinks: Whether it was asked to think.
        where: Names the server in error messages.

    Raises:
        UnusableReply: It holds no answer.
        EngineError: It holds an error in place of a reply.
    """
    document = _object(raw)
    if document is None:
        raise UnusableReply(f"{where} sent something that is no JSON object: {_excerpt(raw)}", Usage(calls=1))
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    usage, cached = _usage(document.get("usage"))
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        if document.get("error"):
            raise _error_in_a_reply(document, raw, where, usage)
        raise UnusableReply(f"{where} sent something that is no chat completion: {_excerpt(raw)}", usage)
    message = choice["message"]
    content, shown = _content(message.get("content") or message.get("refusal"))
    field = shown or _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    thinking, text = split_thinking(_readable(content), profile)
    finish = _text(choice.get("finish_reason")) or "stop"
    if thinks and profile.thinking == "tags" and finish == "length" and not (field or thinking):
        # The server swallowed the opening tag, and the closing one never came.
        thinking, text = text, ""
    reply = Reply(
        text.strip(),
        _readable(field or thinking).strip(),
        finish,
        usage,
        cached,
        thinking_in=_place(field, thinking, content, profile),
        logprobs=bool(choice.get("logprobs")),
    )
    return checked(reply, where)


def _place(field: str, thinking: str, content: str, profile: Profile) -> ThinkingPlace:
    if field.strip():
        return "field"
    if not thinking.strip():
        return "none"
    return "tags" if profile.tags[0] in content or "<|channel|>" in content else "unopened"


def read_error(status: int, raw: bytes, headers: Mapping[str, str], where: str) -> EngineError:
    """Read what a server said when it refused a request."""
    details = error_details(raw)
    said = _readable(_text(details.get("message"))) or _excerpt(raw)
    words = f"{said} {details.get('code')} {details.get('type')}"
    return EngineError(
        f"{where} answered {status}: {said[:400]}",
        kind=_kind(status, words),
        status=status,
        retry_after=_retry_after(headers),
    )


def read_models(raw: bytes) -> list[str] | None:
    """The names in a list of models; ``None`` where it is no such list."""
    listed = (_object(raw) or {}).get("data")
    if not isinstance(listed, list):
        return None
    return [_text(item.get("id")) for item in listed if isinstance(item, dict) and _text(item.get("id"))]


def read_context(raw: bytes, model: str) -> int | None:
    """The context length that a list of models gives for one of them, as several servers do."""
    listed = (_object(raw) or {}).get("data")
    listed = listed if isinstance(listed, list) else []
    for item in listed:
        if isinstance(item, dict) and (item.get("id") == model or len(listed) == 1):
            meta = item.get("meta")
            for holder in (item, meta if isinstance(meta, dict) else {}):
                for name in _CONTEXT_NAMES:
                    if _count(holder.get(name)) > 0:
                        return _count(holder.get(name))
    return None


def quoted(text: str) -> bytes:
    """A string in JSON."""
    return json.dumps(text).encode()


def error_details(raw: bytes) -> dict[str, Any]:
    """The error object in a body, however the server wraps it; empty where there is none."""
    document = _object(raw)
    if document is None:
        return {}
    for key in ("error", "detail", "message"):
        found = document.get(key)
        if isinstance(found, dict):
            return found
        if found:
            return {"message": found if isinstance(found, str) else json.dumps(found), "code": document.get("code")}
    return {}


def checked(reply: Reply, where: str) -> Reply:
    """Make sure that there is an answer, or a good reason why there is none."""
    if reply.finish == "length" or (reply.text and len(reply.text) <= MAX_TEXT):
        return replace(reply, text=reply.text[:MAX_TEXT], thinking=reply.thinking[:MAX_TEXT])
    if reply.text:
        return replace(reply, text=reply.text[:MAX_TEXT], finish="length")
    if reply.finish == "content_filter":
        message = f"{where} withheld the reply (content filter). Rephrase the problem, or leave it out."
        raise UnusableReply(message, reply.usage, "content-filter")
    if not reply.thinking:
        raise UnusableReply(f"{where} sent an empty reply (finish_reason {reply.finish}).", reply.usage)
    # The Engine forgot to leave the thinking, or the server filed all of it there: the answer is in it, at its end.
    return replace(reply, text=reply.thinking[-MAX_TEXT:], thinking="", from_thinking=True)


def _content(content: Any) -> tuple[str, str]:
    """The text and the thinking in a message's content, which some servers send in parts."""
    if not isinstance(content, list):
        return _text(content), ""
    text, thinking = "", ""
    for part in content:
        if isinstance(part, dict) and part.get("type") == "thinking":
            thinking += _content(part.get("thinking"))[0]
        elif isinstance(part, dict):
            text += _text(part.get("text"))
    return text, thinking


def _error_in_a_reply(document: dict[str, Any], raw: bytes, where: str, usage: Usage) -> EngineError:
    details = error_details(raw)
    code = details.get("code")
    said = _readable(_text(details.get("message"))) or _excerpt(raw)
    message = f"{where} answered 200 with an error in the body: {said[:400]}"
    if isinstance(code, int) and 400 <= code < 600:
        return EngineError(message, kind=_kind(code, f"{said} {details.get('type')}"), status=200)
    return UnusableReply(message, usage)


def _kind(status: int, words: str) -> FaultKind:
    if status in (400, 404, 413, 422, 500) and _CONTEXT.search(words):
        return "context"
    if status in (400, 403, 422) and _FILTER.search(words):
        return "content-filter"
    if status == 429 and _QUOTA.search(words):
        return "billing"
    if status in (400, 404, 422) and _MODEL.search(words):
        return "unknown-model"
    if status in _KINDS:
        return _KINDS[status]
    if status == 404 or status < 400:
        return "configuration"
    return "server" if status >= 500 else "bad-request"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until a retry, from the header's number or date."""
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None
    return seconds if 0 <= seconds < float("inf") else None


def _usage(used: Any) -> tuple[Usage, int]:
    """Tokens as the server counted them, and how many of the prompt's it had in its cache."""
    used = used if isinstance(used, dict) else {}
    completion = used.get("completion_tokens_details")
    prompt = used.get("prompt_tokens_details")
    usage = Usage(
        calls=1,
        prompt_tokens=_count(used.get("prompt_tokens")),
        completion_tokens=_count(used.get("completion_tokens")),
        reasoning_tokens=_count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
    )
    return usage, _count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else 0


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else 0


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _readable(text: str) -> str:
    """Replace halves of characters, which JSON can hold and nothing else can."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def _excerpt(raw: bytes) -> str:
    return re.sub(r"\s+", " ", raw[:300].decode("utf-8", "replace")).strip() or "(nothing)"
