"""A predictor's prompt as text with slots, taken from the adapter that the program itself uses.

The adapter formats the prompt once with a private-use character in place of every input. Whatever stands around those
characters is the prompt's text, so what is exported cannot drift from what the Engine receives. Values are inserted as
they are: the pipeline hands its predictors text and numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.adapters.base import Adapter

from coda.errors import UsageError
from coda.program.adapters import SignatureClass, adapter_for
from coda.program.conductor import Coda
from coda.program.settings import AdapterStyle, StageSettings

PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(frozen=True)
class Slot:
    """Where an input goes.

    Attributes:
        name: The input.
        before: Text that comes before the value, and goes away with it.
        optional: Whether a blank value is left out.
    """

    name: str
    before: str = ""
    optional: bool = False

    def fill(self, inputs: Mapping[str, Any]) -> str:
        """The text for these inputs."""
        value = inputs.get(self.name)
        if self.optional and (value is None or not str(value).strip()):
            return ""
        if self.name not in inputs:
            raise UsageError(f"The prompt needs the input {self.name!r}; given are: {', '.join(inputs) or 'none'}.")
        return f"{self.before}{value}"


Part = str | Slot


@dataclass(frozen=True)
class Message:
    """One message of a prompt.

    Attributes:
        role: ``system``, ``user`` or ``assistant``.
        parts: Its text, with slots in between.
    """

    role: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Prompt:
    """What a predictor sends.

    Attributes:
        name: The predictor, such as ``executor.code``.
        adapter: The style it is written in.
        inputs: Names of the inputs.
        outputs: Names of the fields that the reply holds; the last one matters most.
        sampling: Temperature and token limit; ``None`` leaves them to the Engine.
        messages: System message, demos, and at last the message with the slots.
    """

    name: str
    adapter: AdapterStyle
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sampling: StageSettings
    messages: tuple[Message, ...]

    @property
    def characters(self) -> int:
        """Length of the prompt without its inputs."""
        parts = (part for each in self.messages for part in each.parts)
        return sum(len(part if isinstance(part, str) else part.before) for part in parts)

    def fill(self, **inputs: Any) -> list[dict[str, str]]:
        """The messages for these inputs, as the Engine receives them.

        Raises:
            UsageError: An input that the prompt needs is missing.
        """
        return [{"role": each.role, "content": _text(each.parts, inputs)} for each in self.messages]


def prompts_of(program: Coda) -> tuple[Prompt, ...]:
    """The prompts of all predictors, in the program's order."""
    return tuple(_prompts(program))


def _prompts(program: Coda) -> Iterator[Prompt]:
    style = program.settings.adapter
    for name, predictor in program.named_predictors():
        signature = predictor.signature
        yield Prompt(
            name=name,
            adapter=style,
            inputs=tuple(signature.input_fields),
            outputs=tuple(signature.output_fields),
            sampling=getattr(program, name.partition(".")[0]).sampling,
            messages=_messages(adapter_for(style), signature, predictor.demos),
        )


def _messages(adapter: Adapter, signature: SignatureClass, demos: list[dspy.Example]) -> tuple[Message, ...]:
    """Format the prompt with marks, and take it apart at them."""
    inputs = tuple(signature.input_fields)

    def formatted(values: Mapping[str, str]) -> list[dict[str, str]]:
        messages: list[dict[str, str]] = adapter.format(signature, demos, dict(values))
        return messages

    marks = _marks(inputs, "".join(each["content"] for each in formatted(dict.fromkeys(inputs, ""))))
    *fixed, asking = formatted(marks)
    slots = {marks[inputs[0]]: Slot(inputs[0])}
    for name in inputs[1:]:
        blank = formatted({**marks, name: ""})[-1]["content"]
        slots[marks[name]] = _slot(name, asking["content"], marks[name], blank)
    return (
        *(Message(each["role"], (each["content"],)) for each in fixed),
        Message(asking["role"], tuple(_parts(asking["content"], slots))),
    )


def _marks(inputs: tuple[str, ...], text: str) -> dict[str, str]:
    """A character for each input that occurs nowhere in the prompt's own text."""
    unused = (chr(code) for code in PRIVATE_USE if chr(code) not in text)
    return dict(zip(inputs, unused, strict=False))


def _slot(name: str, content: str, mark: str, blank: str) -> Slot:
    """Find out from the prompt without a value what else goes away with it."""
    before, after = content.split(mark)
    if blank == before + after:
        return Slot(name)
    kept = blank.removesuffix(after)
    return Slot(name, before.removeprefix(kept), optional=True)


def _parts(content: str, slots: Mapping[str, Slot]) -> Iterator[Part]:
    """Cut at the marks; text that belongs to an optional slot moves into it."""
    pieces = re.split(f"([{''.join(slots)}])", content)
    texts, marks = pieces[::2], pieces[1::2]
    for text, mark in zip(texts, marks, strict=False):
        slot = slots[mark]
        if own := text.removesuffix(slot.before):
            yield own
        yield slot
    if texts[-1]:
        yield texts[-1]


def _text(parts: tuple[Part, ...], inputs: Mapping[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else part.fill(inputs) for part in parts)
