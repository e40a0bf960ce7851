"""How a signature becomes a prompt, and a reply becomes fields: one adapter for each style.

All of them salvage. A reply that breaks the format is read for what it plainly contains before it is given up, and
never costs another call. By convention the *last* output field of a signature is the one that matters.
"""

from __future__ import annotations

import functools
import re
import typing
from typing import Any

import dspy
from dspy.adapters.base import Adapter
from dspy.utils.exceptions import AdapterParseError

from coda.program.answers import extract_program
from coda.program.settings import AdapterStyle

SignatureClass = type[dspy.Signature]

SALVAGED = "salvaged"
"""Key that marks a prediction read from a reply that broke the format; demos are never made of those."""

_MARKER = re.compile(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*", re.MULTILINE)
_ANSWER_LINE = re.compile(
    r"^[ \t*_#>]*(?:the\s+)?(?:final\s+)?answer[ \t*_]*[:=][ \t*_]*", re.IGNORECASE | re.MULTILINE
)


def adapter_for(style: AdapterStyle) -> Adapter:
    """Return the adapter of a style."""
    return _STYLES[style]()


class _TextOnly:
    """Messages of text and nothing else.

    DSPy's own ``format`` looks for marks of images and other media in the finished text and expands them, so that a
    problem's text could put a picture from any address into the request. No signature here has such inputs.
    """

    def format(
        self: Any, signature: SignatureClass, demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """The instruction, the demos as turns, and the inputs."""
        made: Any = signature
        return [
            {"role": "system", "content": _system_message(self.__class__, made, made.instructions)},
            *self.format_demos(signature, demos),
            {"role": "user", "content": self.format_user_message_content(signature, inputs, main_request=True)},
        ]


@functools.lru_cache(maxsize=512)
def _system_message(adapter: type[Adapter], signature: SignatureClass, instructions: str) -> str:
    """A signature's system message, worked out once: DSPy takes longer for it than for all the rest of a request.

    ``instructions`` tells apart what optimizers have made of one signature in place.
    """
    return str(adapter().format_system_message(signature))


class FieldsAdapter(_TextOnly, dspy.ChatAdapter):
    """DSPy's field markers, without the second call that stock DSPy makes when a reply does not parse."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

    def parse(self, signature: SignatureClass, completion: str) -> dict[str, Any]:
        """Read the fields, or what can be salvaged of them."""
        try:
            return _complete(signature, super().parse(signature, completion), completion)
        except AdapterParseError as error:
            return salvage(signature, completion, error)


class JsonAdapter(_TextOnly, dspy.JSONAdapter):
    """One JSON object per reply, asked for in words: servers differ too much in how they enforce a schema."""

    def __init__(self) -> None:
        super().__init__(use_native_function_calling=False)
        self.use_json_adapter_fallback = False

    def _prepare_response_format(self, lm: Any, lm_kwargs: dict[str, Any], signature: SignatureClass) -> None:
        """Leave the response format alone."""

    def parse(self, signature: SignatureClass, completion: str) -> dict[str, Any]:
        """Read the fields, or what can be salvaged of them."""
        try:
            return _complete(signature, super().parse(signature, completion), completion)
        except AdapterParseError as error:
            return salvage(signature, completion, error)


class PlainAdapter(_TextOnly, Adapter):
    """No markers at all, for Engines that cannot keep to a format.

    The system message is the instruction; the user message holds the inputs, the first one bare, the others under their
    names; the reply is free text. Where a signature has several outputs, the last one is asked for after "Answer:".
    """

    def format_system_message(self, signature: SignatureClass) -> str:
        """The instruction alone."""
        return str(signature.instructions)

    def format_user_message_content(
        self,
        signature: SignatureClass,
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """The inputs that have a value: the first bare, the others under their names."""
        parts = [prefix] if prefix else []
        for position, name in enumerate(signature.input_fields):
            value = inputs.get(name)
            if value is None or str(value).strip() == "":
                continue
            parts.append(str(value) if position == 0 else f"{_title(name)}:\n{value}")
        if main_request and (hint := _plain_hint(signature)):
            parts.append(hint)
        if suffix:
            parts.append(suffix)
        return "\n\n".join(parts)

    def format_assistant_message_content(
        self, signature: SignatureClass, outputs: dict[str, Any], missing_field_message: str | None = None
    ) -> str:
        """The outputs as a person would write them: the thoughts, then the result."""
        *before, primary = signature.output_fields
        parts = [str(outputs[name]) for name in before if str(outputs.get(name) or "").strip()]
        value = outputs.get(primary, missing_field_message)
        text = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
        parts.append(f"Answer: {text}" if parts else text)
        return "\n".join(parts)

    def parse(self, signature: SignatureClass, completion: str) -> dict[str, Any]:
        """Take the reply as the last output field, and what stands before "Answer:" as the one before it."""
        return salvage(signature, completion, None)


_STYLES: dict[AdapterStyle, type[Adapter]] = {"fields": FieldsAdapter, "json": JsonAdapter, "plain": PlainAdapter}


def salvage(signature: SignatureClass, completion: str, error: AdapterParseError | None) -> dict[str, Any]:
    """Read what a reply plainly contains, without its format.

    Args:
        signature: The signature whose outputs are wanted.
        completion: The reply.
        error: What the style's own parser said; ``None`` for the style that has no format to break.

    Raises:
        AdapterParseError: Where nothing in the reply can serve as the last output field.
    """
    *before, primary = signature.output_fields
    fields: dict[str, Any] = {name: _empty(signature.output_fields[name].annotation) for name in before}
    text = _MARKER.sub("", completion).strip()
    head, value = _split_answer(text) if before else ("", text)
    if before and signature.output_fields[before[-1]].annotation is str:
        fields[before[-1]] = head
    if error is not None:
        parsed = error.parsed_result if isinstance(error.parsed_result, dict) else {}
        fields.update({name: parsed[name] for name in before if parsed.get(name)})
        fields[SALVAGED] = True
    found = _read(signature.output_fields[primary].annotation, primary, value)
    if found is None:
        raise AdapterParseError(
            adapter_name="salvage",
            signature=signature,
            lm_response=completion,
            message=f"The reply holds nothing that can serve as {primary!r}.",
        )
    fields[primary] = found
    return fields


def _complete(signature: SignatureClass, fields: dict[str, Any], completion: str) -> dict[str, Any]:
    """Accept parsed fields unless the one that matters is blank or, for a program, still wrapped in a code fence."""
    primary = list(signature.output_fields)[-1]
    value = fields[primary]
    if isinstance(value, str):
        if not value.strip():
            raise AdapterParseError(
                adapter_name="complete", signature=signature, lm_response=completion, parsed_result=fields
            )
        if primary == "program":
            fields[primary] = extract_program(value) or value
    return fields


def _split_answer(text: str) -> tuple[str, str]:
    """Split at the last line that states the answer: what leads to it, and the answer; ("", text) without one."""
    statements = list(_ANSWER_LINE.finditer(text))
    if not statements:
        return "", text
    last = statements[-1]
    answer = text[last.end() :].strip()
    return (text[: last.start()].strip(), answer) if answer else ("", text)


def _read(annotation: Any, name: str, text: str) -> Any:
    """Read one value of the annotation's type from free text; ``None`` where there is none."""
    if typing.get_origin(annotation) is typing.Literal:
        options = {str(option).lower(): option for option in typing.get_args(annotation)}
        words = re.findall(r"\w+", text.lower())
        return next((options[word] for word in reversed(words) if word in options), None)
    if annotation is not str:
        return None
    value = extract_program(text) if name == "program" else text
    return value if value and value.strip() else None


def _empty(annotation: Any) -> Any:
    """The value that stands for "not given"."""
    if typing.get_origin(annotation) is typing.Literal:
        return typing.get_args(annotation)[0]
    return [] if typing.get_origin(annotation) is list else ""


def _plain_hint(signature: SignatureClass) -> str:
    """How to set the last output apart from what stands before it."""
    name, field = list(signature.output_fields.items())[-1]
    if typing.get_origin(field.annotation) is typing.Literal:
        return "End with " + " or ".join(f'"Answer: {option}"' for option in typing.get_args(field.annotation)) + "."
    if field.annotation is not str:
        return str(field.json_schema_extra["desc"])
    return 'End with "Answer: " and the answer alone.' if len(signature.output_fields) > 1 and name == "answer" else ""


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
