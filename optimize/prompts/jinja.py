"""``jinja``: one template for each predictor, which renders to the messages as a JSON list.

The text of a message stands in the template as it is; only what Jinja would read as its own, or would change (a
carriage return), is written as an expression.
"""

from __future__ import annotations

import json
import re

from coda.optimize.prompts.prompt import Part, Prompt

_HAZARD = re.compile(r"\{(?=[{%#\r]|\Z)|\r")
"""Braces that open a tag, or would together with one that follows; and what Jinja turns into a line feed."""


def render(prompts: tuple[Prompt, ...]) -> dict[str, str]:
    """The files of this format by name."""
    return {f"{each.name}.jinja": _template(each) for each in prompts}


def _template(prompt: Prompt) -> str:
    blocks = [
        f"{{% set message_{n} %}}{''.join(map(_part, each.parts))}{{% endset %}}"
        for n, each in enumerate(prompt.messages, start=1)
    ]
    messages = [
        f'  {{"role": "{each.role}", "content": {{{{ message_{n} | tojson }}}}}}'
        for n, each in enumerate(prompt.messages, start=1)
    ]
    return "\n".join([_heading(prompt), *blocks, "[", ",\n".join(messages), "]"]) + "\n"


def _heading(prompt: Prompt) -> str:
    return (
        f"{{# {prompt.name}, style {prompt.adapter}; inputs: {', '.join(prompt.inputs)};"
        f" outputs: {', '.join(prompt.outputs)}; parameters: {_parameters(prompt)}."
        " Renders to a JSON list of messages; do not switch autoescape on. #}"
    )


def _parameters(prompt: Prompt) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in prompt.parameters.items()) or "none"


def _part(part: Part) -> str:
    if isinstance(part, str):
        return _literal(part)
    value = f"{{{{ {part.name} }}}}"
    if not part.optional:
        return value
    given = f"{part.name} is defined and {part.name} is not none and {part.name} | string | trim"
    return f"{{% if {given} %}}{_literal(part.before)}{value}{{% endif %}}"


def _literal(text: str) -> str:
    return _HAZARD.sub(lambda match: "{{ '{' }}" if match[0] == "{" else r"{{ '\r' }}", text)
