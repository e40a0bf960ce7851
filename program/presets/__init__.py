"""How much thought a problem gets: presets of the pipeline's settings, and how a model family's settings join them.

A preset is a TOML file beside this one. Copy it, change it, and pass it with ``--settings FILE``.
"""

from __future__ import annotations

import itertools
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from coda.errors import UsageError
from coda.program.settings import Settings

ORDER = ("fast", "auto", "thorough", "published")


@cache
def preset_text(name: str) -> str:
    """A preset's TOML.

    Raises:
        UsageError: There is no such preset.
    """
    if name not in ORDER:
        raise UsageError(f"There is no preset {name!r}. Presets: {', '.join(ORDER)}.")
    return (files("coda.program.presets") / f"{name}.toml").read_text("utf-8")


def preset(name: str, family: dict[str, Any] | None = None) -> Settings:
    """A preset's settings.

    Args:
        name: Which preset.
        family: A profile's ``stages``: what suits a family of models. They go over the preset, with one exception:
            their ``paths`` say which modes suit the family and in which order, the preset says how many are followed.

    Raises:
        UsageError: There is no such preset.
    """
    base = Settings.parse(tomllib.loads(preset_text(name)), where=f"Preset {name}")
    if not family:
        return base
    over = dict(family)
    if "paths" in over:
        over["paths"] = tuple(itertools.islice(itertools.cycle(over["paths"]), len(base.paths)))
    return Settings.parse({**base.model_dump(), **over}, where=f"Preset {name} for this family of models")
