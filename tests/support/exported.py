"""What someone without this project would write to use exported prompts: a reader for each format."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

Messages = list[dict[str, str]]
Reader = Callable[..., Messages]
"""Given the inputs by name, gives the messages."""


def messages_reader(file: Path) -> Reader:
    """The reader that docs/export.md prints."""
    docs = Path(__file__).parents[2] / "docs" / "export.md"
    printed = re.search(r"^    def fill\(.*?(?=^\S)", docs.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert printed is not None
    names: dict[str, Any] = {}
    exec(textwrap.dedent(printed[0]), names)
    document = json.loads(file.read_text("utf-8"))
    return lambda **inputs: names["messages"](document, **inputs)


def jinja_reader(file: Path) -> Reader:
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(file.read_text("utf-8"))
    return lambda **inputs: json.loads(template.render(**inputs))


def python_module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"pipeline_{abs(hash(file))}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def python_reader(file: Path, prompt: str) -> Reader:
    module = python_module(file)
    return lambda **inputs: module.messages(prompt, **inputs)


def markdown_reader(file: Path) -> Reader:
    """Read the fenced blocks, and fill in the marks that the page's note lists."""
    page = file.read_bytes().decode("utf-8")
    blocks = re.findall(r"^## \d+\. (\w+)\n\n(```+)text\n(.*?)\n\2\n", page, re.DOTALL | re.MULTILINE)
    braces = len(re.findall(r"^Slots: `(\{+)", page, re.MULTILINE)[0])
    left, right = "{" * braces, "}" * braces

    def fill(text: str, inputs: dict[str, Any]) -> str:
        names = "|".join(inputs)
        section = re.compile(rf"{left}#({names}){right}(.*?){left}\1{right}{left}/\1{right}", re.DOTALL)
        slot = re.compile(rf"{left}({names}){right}")

        def shown(match: re.Match[str]) -> str:
            return f"{match[2]}{left}{match[1]}{right}" if str(inputs[match[1]]).strip() else ""

        return slot.sub(lambda match: str(inputs[match[1]]), section.sub(shown, text))

    return lambda **inputs: [{"role": role, "content": fill(text, inputs)} for role, _, text in blocks]
