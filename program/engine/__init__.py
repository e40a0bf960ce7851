"""The Engine layer: the only way to a model."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from coda.program.engine.config import EngineConfig, Prices

if TYPE_CHECKING:
    from coda.program.engine.engine import Engine

__all__ = ["Engine", "EngineConfig", "Prices"]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        return importlib.import_module("coda.program.engine.engine").Engine
    raise AttributeError(f"module 'coda.program.engine' has no attribute {name!r}")
