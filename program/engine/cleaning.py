"""Takes the thinking out of a reply, before DSPy's adapters look for fields in it.

A draft inside the thinking may hold everything that an answer holds, field markers included; an adapter would take the
draft for the answer.
"""

from __future__ import annotations

import re

from coda.program.engine.profiles import Profile

_CHANNEL = re.compile(
    r"<\|channel\|>(\w+).*?<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)", re.DOTALL
)
"""GPT-OSS's own format, which some servers pass on unread."""


def split_thinking(text: str, profile: Profile) -> tuple[str, str]:
    """Separate the thinking from the answer.

    Args:
        text: The reply's content.
        profile: Says which tags the family uses, if any.

    Returns:
        The thinking and the answer. Thinking that never ends has no answer after it.
    """
    if "<|channel|>" in text:
        return _split_channels(text)
    if profile.thinking == "none":
        return "", text
    opening, closing = profile.tags
    before, closed, after = text.rpartition(closing)
    if closed:
        return _without(before, opening, closing), after
    before, opened, after = text.partition(opening)
    if opened and not before.strip():
        return after, ""
    return "", text


def _split_channels(text: str) -> tuple[str, str]:
    parts = _CHANNEL.findall(text)
    final = [content for channel, content in parts if channel == "final"]
    thinking = "\n".join(content for channel, content in parts if channel != "final")
    return thinking, "\n".join(final)


def _without(text: str, *tags: str) -> str:
    for tag in tags:
        text = text.replace(tag, "")
    return text
