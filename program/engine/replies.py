"""Replies as the Engine layer saw them, for those who need more than the text that DSPy parses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from coda.program.types import Usage

ThinkingPlace = Literal["none", "field", "tags", "unopened"]
"""Where a reply shows thinking: nowhere, in a field of its own, between tags, or before a closing tag alone."""


@dataclass(frozen=True)
class Reply:
    """A reply.

    Attributes:
        text: The answer, without the thinking.
        thinking: What the Engine thought before it, where it shows that.
        finish: ``stop``, ``length``, ``content_filter``, or what the server says.
        usage: What it cost.
        cached_tokens: Prompt tokens that the server had in its own cache.
        from_thinking: Whether the text is the end of the thinking, because the Engine wrote no answer after it.
        thinking_in: Where the thinking was found.
        logprobs: Whether the server sent the probabilities of the tokens.
    """

    text: str
    thinking: str = ""
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    cached_tokens: int = 0
    from_thinking: bool = False
    thinking_in: ThinkingPlace = "none"
    logprobs: bool = False


_captures: ContextVar[tuple[list[Reply], ...]] = ContextVar("coda_replies", default=())


@contextmanager
def capture() -> Iterator[list[Reply]]:
    """Collect the replies that come within the block, in the order in which they come."""
    replies: list[Reply] = []
    token = _captures.set((*_captures.get(), replies))
    try:
        yield replies
    finally:
        _captures.reset(token)


def deliver(reply: Reply) -> None:
    """Hand a reply to all who capture."""
    for replies in _captures.get():
        replies.append(reply)
