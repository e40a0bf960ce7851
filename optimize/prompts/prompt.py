"""A predictor's prompt as text with slots, taken from the adapter that the program itself uses.

The adapter formats the prompt once with a private-use character in place of every input. Whatever stands around those
characters is the prompt's text, so what is exported cannot drift from what the Engine receives. Values are inserted as
they are: the pipeline hands its predictors text and numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import dspy

from coda.errors import UsageError
from coda.program.adapters import adapter_for
from coda.program.conductor import Coda
from coda.program.engine import Engine
from coda.program.engine.ask import Ask, Draft
from coda.program.engine.ask import render as request_body
from coda.program.engine.profiles import Effort, Profile
from coda.program.settings import AdapterStyle, StageSettings

Messages = list[dict[str, Any]]

PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(frozen=True)
class Dialect:
    """How a family of models is asked: what its profile makes of a request.

    Attributes:
        profile: The profile.
        effort: How hard it is to think.
    """

    profile: Profile
    effort: Effort

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """The dialect that an Engine speaks."""
        return cls(engine.profile, engine.profile.level(engine.config.effort))

    def request(self, messages: Messages, parameters: dict[str, Any]) -> dict[str, Any]:
        """The body of the request."""
        return request_body(Draft(Ask(messages, parameters), self.effort), self.profile, None)


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
        parameters: Temperature, token limit and the like; what is not named is left to the server.
        messages: System message, demos, and at last the message with the slots.
    """

    name: str
    adapter: AdapterStyle
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: dict[str, Any]
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


def prompts_of(program: Coda, dialect: Dialect | None = None) -> tuple[Prompt, ...]:
    """The prompts of all predictors, in the program's order.

    Args:
        program: The program.
        dialect: What the Engine's profile makes of them; without it they are as the program hands them to any Engine.
    """
    return tuple(
        _prompt(name, predictor, program.settings.adapter, _sampling(program, name), dialect)
        for name, predictor in program.named_predictors()
    )


def _sampling(program: Coda, predictor: str) -> StageSettings:
    sampling: StageSettings = getattr(program, predictor.partition(".")[0]).sampling
    return sampling


def _prompt(
    name: str, predictor: dspy.Predict, style: AdapterStyle, sampling: StageSettings, dialect: Dialect | None
) -> Prompt:
    signature, adapter = predictor.signature, adapter_for(style)
    asked = sampling.model_dump(exclude_none=True)

    def body(inputs: Mapping[str, str]) -> dict[str, Any]:
        messages: Messages = adapter.format(signature, predictor.demos, dict(inputs))
        return {"messages": messages, **asked} if dialect is None else dialect.request(messages, asked)

    inputs = tuple(signature.input_fields)
    parameters = {key: value for key, value in body(dict.fromkeys(inputs, "")).items() if key != "messages"}
    return Prompt(
        name=name,
        adapter=style,
        inputs=inputs,
        outputs=tuple(signature.output_fields),
        parameters=parameters,
        messages=_messages(inputs, lambda values: body(values)["messages"]),
    )


def _messages(inputs: tuple[str, ...], formatted: Callable[[Mapping[str, str]], Messages]) -> tuple[Message, ...]:
    """Format the prompt with marks, and take it apart at them."""
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
