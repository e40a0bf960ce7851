"""``messages``: OpenAI messages as JSON, with slots as parts of their own.

A message without slots is plain OpenAI JSON. The content of the last one is a list of parts, ``{"text": …}`` or
``{"slot": NAME}``, to be joined; a slot with ``"optional": true`` is left out, together with its ``before``, when its
value is blank. Text is never escaped or searched for placeholders, so it may hold anything.
"""

from __future__ import annotations

import json
from typing import Any

from coda.optimize.prompts.prompt import Message, Part, Prompt

FORMAT = "coda-prompt/1"


def document(prompt: Prompt) -> dict[str, Any]:
    """A prompt as a JSON document."""
    return {
        "format": FORMAT,
        "predictor": prompt.name,
        "adapter": prompt.adapter,
        "inputs": list(prompt.inputs),
        "outputs": list(prompt.outputs),
        "parameters": prompt.parameters,
        "messages": [{"role": each.role, "content": _content(each)} for each in prompt.messages],
    }


def render(prompts: tuple[Prompt, ...]) -> dict[str, str]:
    """The files of this format by name."""
    return {f"{each.name}.json": json.dumps(document(each), ensure_ascii=False, indent=2) + "\n" for each in prompts}


def _content(message: Message) -> str | list[dict[str, Any]]:
    if all(isinstance(part, str) for part in message.parts):
        return "".join(str(part) for part in message.parts)
    return [_part(part) for part in message.parts]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if part.optional:
        return {"slot": part.name, "optional": True, "before": part.before}
    return {"slot": part.name}
