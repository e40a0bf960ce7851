"""The formats in which prompts are exported."""

from __future__ import annotations

from typing import Literal, get_args

from coda.errors import UsageError
from coda.optimize.prompts import jinja, markdown, messages, python
from coda.optimize.prompts.prompt import Dialect, Prompt, prompts_of
from coda.program.conductor import Coda
from coda.program.settings import Settings

Format = Literal["messages", "markdown", "jinja", "python"]
"""OpenAI messages with named slots, pages for reading, Jinja templates, or one Python file that runs on its own."""


def render(program: Coda, format: Format, *, dialect: Dialect | None = None, model: str = "") -> dict[str, bytes]:
    """The files of a format, by name.

    Args:
        program: The program.
        format: The format.
        dialect: What the Engine's profile makes of a prompt.
        model: The model that the Python file asks by default.

    Raises:
        UsageError: There is no such format.
    """
    texts = _texts(prompts_of(program, dialect), format, program.settings, model)
    return {name: encode(text) for name, text in texts.items()}


def _texts(prompts: tuple[Prompt, ...], format: Format, settings: Settings, model: str) -> dict[str, str]:
    match format:
        case "messages":
            return messages.render(prompts)
        case "markdown":
            return markdown.render(prompts)
        case "jinja":
            return jinja.render(prompts)
        case "python":
            return python.render(prompts, settings, model)
    raise UsageError(f"There is no export format {format!r}. Choose one of: {', '.join(get_args(Format))}.")


def encode(text: str) -> bytes:
    """UTF-8; a lone surrogate, which it cannot hold, becomes an escape, as JSON and Python write it."""
    return text.encode("utf-8", "backslashreplace")
