"""What to do when a request failed, or a reply was cut off: the next draft, or nothing more."""

from __future__ import annotations

import random
import re
import time
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from coda.errors import EngineError
from coda.program.engine.ask import LEAST_TOKENS, TEMPLATE_TOKENS, Draft, characters, limit_of
from coda.program.engine.profiles import Profile
from coda.program.engine.replies import Reply
from coda.program.engine.server import Habits, ServerDown

PATIENCE = 600.0
"""Seconds for which one request waits out a server's rate limits."""

BACKOFF = 0.25
"""Seconds before a request that failed once is sent again; each time twice as long, up to `LONGEST_BACKOFF`."""
LONGEST_BACKOFF = 8.0

FEW_RETRIES = {"timeout": 1, "bad-reply": 2}
"""Faults that cost as much as a reply are not paid for as often as others."""

_COMPLAINT = re.compile(
    r"unknown|unsupported|unrecogni[sz]ed|unexpected|not supported|not permitted|not allowed|does not support|"
    r"extra.forbidden|extra inputs|invalid (argument|parameter|field)|no such (argument|parameter)",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"use '?(max_completion_tokens|max_tokens)'? instead", re.IGNORECASE)
_CONTEXT = re.compile(
    r"(?:maximum context length is|context (?:size|length|window)(?: is| of| \(n_ctx\))?)\D{0,12}(\d{3,8})",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:\(|has |request \()(\d{1,8}) (?:input )?tokens?(?: (?:in|from) the (?:messages|input|prompt))?\b"
    r"|\((\d{1,8}) in the (?:messages|prompt)",
    re.IGNORECASE,
)
_REQUIRED = frozenset({"messages", "model"})


@dataclass
class Remedies:
    """The remedies for one request; each is tried once, or as often as the configuration allows.

    Args:
        profile: Knows the family's quirks.
        habits: What the server does not take; what it refuses is added.
        max_retries: How often a request that failed is sent again.
    """

    profile: Profile
    habits: Habits
    max_retries: int
    _failures: dict[str, int] = field(default_factory=dict)
    _limited_since: float | None = None
    _tried: set[str] = field(default_factory=set)

    def after_fault(self, error: EngineError, draft: Draft, body: dict[str, Any]) -> tuple[Draft, float]:
        """What to send next, and after how many seconds.

        Raises:
            EngineError: The fault itself, where there is no remedy.
        """
        if isinstance(error, ServerDown):
            raise error
        if error.status in (400, 422) and self._learn(error, body):
            return draft, 0.0
        if error.kind == "context":
            return self._shorten(error, draft, body), 0.0
        if error.kind == "rate-limit":
            return draft, self._wait(error)
        return self._again(error, draft)

    def after_cut(self, reply: Reply, draft: Draft, body: dict[str, Any]) -> Draft | None:
        """What to send because a reply was cut off; ``None`` where the reply must do.

        An Engine that has not come to an answer thinks less; one that has gets more room, unless it merely repeats
        itself.
        """
        lower = self.profile.less_than(draft.effort.name)
        if not reply.text and lower is not None and self._first("effort"):
            return replace(draft, effort=self.profile.level(lower), max_tokens=None)
        limit = limit_of(body)
        context = self.habits.context or self.profile.context
        longer = min(2 * limit, context - reply.usage.prompt_tokens - TEMPLATE_TOKENS)
        worth_it = self.profile.longer_once and longer > 1.2 * limit and not _repeats(reply.text or reply.thinking)
        return replace(draft, max_tokens=longer) if worth_it and self._first("longer") else None

    def _learn(self, error: EngineError, body: dict[str, Any]) -> bool:
        """Whether the server named a parameter that it does not take; it is left out from now on."""
        said = str(error)
        if instead := _INSTEAD.search(said):
            name, other = self.profile.max_tokens_name, instead.group(1).lower()
            if self.habits.renamed.get(name, name) != other:
                self.habits.renamed[name] = other
                return True
        if not _COMPLAINT.search(said):
            return False
        names = sorted((name for name in body if name not in _REQUIRED), key=len, reverse=True)
        named = next((name for name in names if re.search(rf"\b{re.escape(name)}\b", said)), None)
        if named is None or named in self.habits.dropped:
            return False
        self.habits.dropped.add(named)
        return True

    def _shorten(self, error: EngineError, draft: Draft, body: dict[str, Any]) -> Draft:
        """Leave less room for the reply where the prompt fits, else leave out the examples."""
        said = str(error)
        context = next((int(found) for found in _CONTEXT.findall(said)), None)
        prompt = next((int(one or other) for one, other in _PROMPT.findall(said)), None)
        if context is not None:
            self.habits.context = context
        if prompt is not None:
            self.habits.tokens_per_character = prompt / max(1, characters(body["messages"]))
        if context is not None and prompt is not None and self._first("room"):
            room = context - prompt - 16
            if LEAST_TOKENS <= room < limit_of(body):
                return replace(draft, max_tokens=room)
        if len(draft.ask.messages) > 2 and self._first("examples"):
            return replace(draft, examples=False)
        raise error

    def _wait(self, error: EngineError) -> float:
        """The server's pause is waited out by all; a request only sees to it that this has an end."""
        now = time.monotonic()
        if self._limited_since is None:
            self._limited_since = now
        until = now + (error.retry_after or 0.0)
        if self.max_retries == 0 or until - self._limited_since > PATIENCE:
            raise error
        return 0.0

    def _again(self, error: EngineError, draft: Draft) -> tuple[Draft, float]:
        flaky = error.kind == "bad-request" and self.profile.flaky_requests
        failures = self._failures[error.kind] = self._failures.get(error.kind, 0) + 1
        all_failures = sum(self._failures.values())
        few = FEW_RETRIES.get(error.kind, self.max_retries)
        if not (error.transient or flaky) or failures > few or all_failures > self.max_retries:
            raise error
        if error.kind == "bad-reply":
            draft = replace(draft, redraw=draft.redraw + 1)
        lower = self.profile.less_than(draft.effort.name)
        if lower is not None and all_failures >= 2 and error.kind in ("server", "bad-request", "bad-reply"):
            draft = replace(draft, effort=self.profile.level(lower))
        backoff = min(LONGEST_BACKOFF, BACKOFF * 2.0 ** (all_failures - 1))
        return draft, backoff * random.uniform(0.75, 1.25)

    def _first(self, remedy: str) -> bool:
        first = remedy not in self._tried
        self._tried.add(remedy)
        return first


def _repeats(text: str) -> bool:
    """Whether the end of a text is a few words over and over: more room would only bring more of them."""
    tail = text[-2000:].encode()
    return len(tail) >= 500 and len(zlib.compress(tail)) < 0.08 * len(tail)
