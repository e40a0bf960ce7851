"""Replies as the Engine layer saw them, for those who need more than the text that DSPy parses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from coda.program.types import Usage


@dataclass(frozen=True)
class Reply:
    """A reply.

    Attributes:
        text: The answer, without the thinking.
        thinking: What the Engine thought before it, where it shows that.
        finish: ``stop``, ``length``, ``content_filter``, or what the server says.
        usage: What it cost.
    """

    text: str
    thinking: str = ""
    finish: str = "stop"
    usage: Usage = Usage()


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
