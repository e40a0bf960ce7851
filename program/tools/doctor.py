"""What this machine gives to programs: the sandbox's layers, the libraries inside, the compilers."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from dataclasses import dataclass

from coda.program.tools import isolation
from coda.program.tools.compiler import LANGUAGES
from coda.program.tools.root import PACKAGES
from coda.program.types import Isolation

_SCIENCE = ("numpy", "sympy", "scipy")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What it is.
        works: Whether it is there and works.
        detail: What it is good for, or where it was found.
        remedy: How to get it, where it is missing.
    """

    name: str
    works: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The state of the sandbox.

    Attributes:
        level: The rung of the ladder.
        why: What is missing, in a sentence.
        layers: The layers of isolation, outermost first.
        tools: Libraries and compilers.
    """

    level: Isolation
    why: str
    layers: tuple[Finding, ...]
    tools: tuple[Finding, ...]


def examine() -> Diagnosis:
    """Try the sandbox, layer by layer, and look for what programs may use."""
    ground = isolation.survey()
    layers = [
        Finding(layer.name, layer.works, layer.protects, "" if layer.works else layer.remedy)
        for layer in ground.features
    ]
    return Diagnosis(ground.level, ground.why, tuple(layers), (_python(), *_libraries(), *_compilers()))


def _python() -> Finding:
    return Finding("python", True, f"{platform.python_version()}, the interpreter that CODA runs on")


def _libraries() -> list[Finding]:
    here = {name: importlib.util.find_spec(name) is not None for name in PACKAGES}
    return [
        Finding(name, works, "programs can import it", "" if works else f"pip install {name}")
        for name, works in here.items()
        if works or name in _SCIENCE
    ]


def _compilers() -> list[Finding]:
    found = []
    for row in LANGUAGES.values():
        path = next((path for name in row.compilers if (path := shutil.which(name))), None)
        remedy = "" if path else f"install the package {row.package}"
        detail = path or "for programs in this language"
        found.append(Finding(f"{row.title} compiler", path is not None, detail, remedy))
    return found
