"""Every knob of the pipeline, once: the command line, TOML files, artefacts and Python all use this model."""

from __future__ import annotations

import tomllib
from pathlib import Path as FilePath
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coda.errors import UsageError
from coda.program.types import Mode

AdapterStyle = Literal["fields", "json", "plain"]
"""How fields are written into a prompt and read from a reply: with DSPy's markers, as JSON, or without any markers."""

Strategy = Literal["auto", "majority", "compare", "tests"]


class StageSettings(BaseModel):
    """How one stage samples. ``None`` leaves a value to the Engine's profile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    max_tokens: int | None = Field(default=None, ge=1)


class Limits(BaseModel):
    """What one problem, or one run, may cost. ``None`` is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_calls: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_usd: float | None = Field(default=None, gt=0)
    """Needs the Engine's prices."""


class Settings(BaseModel):
    """How the Conductor works on a problem.

    Example:
        >>> Settings(paths=("code", "code"), plan=False).quorum
        2
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    adapter: AdapterStyle = "fields"
    written_reasoning: bool = True
    """Ask for written reasoning. Off for Engines that reason internally: asking again would pay for it twice."""
    plan: bool = True
    """Let the Engine devise the paths; off, or when its plan cannot be used, the default ``paths`` are followed."""
    paths: tuple[Mode, ...] = Field(default=("code", "reason", "code", "reason"), min_length=1, max_length=60)
    """The default paths, likeliest first."""
    max_paths: int = Field(default=4, ge=1, le=60)
    """At most so many paths of a plan are followed."""
    quorum: int = Field(default=2, ge=1)
    """So many attempts with the same answer end the search; 1 takes the first answer that comes."""
    max_refinements: int = Field(default=1, ge=0, le=10)
    """Rounds of correction on real feedback, for each path."""
    reflect: bool = True
    verifier: Strategy = "auto"
    planner_stage: StageSettings = StageSettings(temperature=0.7, max_tokens=1024)
    executor_stage: StageSettings = StageSettings(temperature=0.7)
    reflector_stage: StageSettings = StageSettings(temperature=0.3)
    verifier_stage: StageSettings = StageSettings(temperature=0.0)
    per_problem: Limits = Limits()
    exec_timeout: float = Field(default=10.0, gt=0)
    """Wall-clock seconds for one run of a program."""
    exec_memory_mb: int = Field(default=512, ge=64)

    @classmethod
    def from_toml(cls, file: FilePath) -> Self:
        """Read settings from a TOML file.

        Raises:
            UsageError: The file is missing, is no TOML, or holds a key or value that does not exist.
        """
        try:
            values = tomllib.loads(file.read_text("utf-8"))
        except OSError as error:
            raise UsageError(f"Settings file {file}: {error.strerror}. Give the path of a TOML file.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"Settings file {file} is not valid TOML: {error}.") from error
        return cls.parse(values, where=f"Settings file {file}")

    @classmethod
    def parse(cls, values: dict[str, Any], *, where: str) -> Self:
        """Check ``values`` and build the settings; ``where`` names their source in the error message.

        Raises:
            UsageError: A key or value does not exist.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            hint = f" Known settings: {', '.join(cls.model_fields)}." if first["type"] == "extra_forbidden" else ""
            raise UsageError(f"{where}: {name}: {first['msg']}.{hint}") from error
