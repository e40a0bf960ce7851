"""``python``: one file that runs the pipeline's prompts with the standard library alone.

The file is `coda.optimize.prompts.standalone` with the prompts written into it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from coda.optimize.prompts.messages import document
from coda.optimize.prompts.prompt import Prompt
from coda.program.settings import Settings

FILE = "pipeline.py"

PLACE = "PROGRAM: dict[str, Any] = {}\n"
"""The line that the prompts replace."""

USED = ("straight", "plan", "paths", "max_paths", "quorum", "max_refinements", "reflect", "exec_timeout")
"""The settings that the file follows."""


def render(prompts: tuple[Prompt, ...], settings: Settings, model: str) -> dict[str, str]:
    """The file, by its name."""
    program = {
        "model": model.removeprefix("openai/"),
        "adapter": settings.adapter,
        "settings": settings.model_dump(mode="json", include=set(USED)),
        "prompts": {each.name: document(each) for each in prompts},
    }
    source = (files("coda.optimize.prompts") / "standalone.py").read_text("utf-8")
    return {FILE: source.replace(PLACE, f"PROGRAM: dict[str, Any] = {_literal(program)}\n")}


def _literal(value: Any, indent: str = "") -> str:
    """A value as Python source that can be read: a line of source for each line of text."""
    inner = indent + "    "
    if isinstance(value, dict) and value:
        return _block("{}", [f"{key!r}: {_literal(item, inner)}," for key, item in value.items()], indent)
    if isinstance(value, list) and value:
        return _block("[]", [f"{_literal(item, inner)}," for item in value], indent)
    if isinstance(value, str) and "\n" in value:
        return _block("()", [repr(line) for line in value.splitlines(keepends=True)], indent)
    return repr(value)


def _block(brackets: str, lines: list[str], indent: str) -> str:
    return "\n".join([brackets[0], *(f"{indent}    {line}" for line in lines), indent + brackets[1]])
