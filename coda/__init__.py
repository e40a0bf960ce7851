"""CODA: a Conductor that makes a medium-sized language model reason like a larger one.

Public names load on first use, so that ``import coda`` stays cheap.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

# These must be set before the libraries that read them are imported: the first stops a blocking fetch of a price
# table from the internet, the second stops usage reports to MLflow's makers.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

__version__ = "0.1.0"

_HOMES = {
    "Attempt": "coda.program.types",
    "Coda": "coda.program.conductor",
    "CodaError": "coda.errors",
    "Engine": "coda.program.engine",
    "EngineConfig": "coda.program.engine",
    "Problem": "coda.program.types",
    "Settings": "coda.program.settings",
    "Solution": "coda.program.types",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coda' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
