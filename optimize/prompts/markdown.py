"""``markdown``: prompts for reading, one file for each predictor.

The messages stand in fenced blocks, exact to the byte. Slots are written as in Mustache: ``{{problem}}``, and
``{{#approach}}…{{/approach}}`` around what goes away when ``approach`` is blank. Where a prompt's own text holds such a
mark, all marks get more braces.
"""

from __future__ import annotations

import json
import re

from coda.optimize.prompts.prompt import Message, Part, Prompt


def render(prompts: tuple[Prompt, ...]) -> dict[str, str]:
    """The files of this format by name."""
    return {f"{each.name}.md": _page(each) for each in prompts}


def _page(prompt: Prompt) -> str:
    braces = _braces(prompt)
    slots = [_part(part, braces) for part in prompt.messages[-1].parts if not isinstance(part, str)]
    facts = [
        ("adapter style", prompt.adapter),
        ("inputs", ", ".join(prompt.inputs)),
        ("outputs", ", ".join(prompt.outputs)),
        *((name, json.dumps(value)) for name, value in prompt.parameters.items()),
        ("demos", str(sum(each.role == "assistant" for each in prompt.messages))),
    ]
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts)])
    note = f"Slots: {', '.join(f'`{_visible(slot)}`' for slot in slots)}. Everything else is sent as it stands."
    messages = "\n".join(f"## {n}. {each.role}\n\n{_block(each, braces)}" for n, each in enumerate(prompt.messages, 1))
    return f"# {prompt.name}\n\n{table}\n\n{note}\n\n{messages}"


def _visible(slot: str) -> str:
    return slot.replace("\n", "⏎")


def _braces(prompt: Prompt) -> int:
    """How many braces make a mark that the prompt's own text does not hold."""
    text = "".join(part if isinstance(part, str) else part.before for each in prompt.messages for part in each.parts)
    names = "|".join(map(re.escape, prompt.inputs))
    longest = max((len(found) for found in re.findall(rf"(\{{+)[#/]?(?:{names})\}}", text)), default=1)
    return max(2, longest + 1)


def _block(message: Message, braces: int) -> str:
    """A fenced block with a fence longer than any in the text."""
    text = "".join(_part(part, braces) for part in message.parts)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}\n"


def _part(part: Part, braces: int) -> str:
    if isinstance(part, str):
        return part
    left, right = "{" * braces, "}" * braces
    value = f"{left}{part.name}{right}"
    if not part.optional:
        return value
    return f"{left}#{part.name}{right}{part.before}{value}{left}/{part.name}{right}"
