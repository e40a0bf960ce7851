"""Every knob of the pipeline, once: the command line, TOML files, artefacts and Python all use this model."""

from __future__ import annotations

import tomllib
from pathlib import Path as FilePath
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from coda.errors import UsageError
from coda.program.types import Mode, Task

AdapterStyle = Literal["fields", "json", "plain"]
"""How fields are written into a prompt and read from a reply: with DSPy's markers, as JSON, or without any markers."""

Scorer = Literal["vote", "judge", "compare", "tests"]
"""What a verifier can go by: how many attempts agree, what the Engine says of each answer on its own, what it says of
answers in pairs, what tests of the programs show."""

Strategy = Literal["auto", "vote", "majority", "judge", "compare", "tests", "weighted"]
"""How the verifier chooses. ``vote`` takes the most frequent answer and never asks the Engine; ``majority`` breaks its
ties by evidence, then by ``compare``; ``weighted`` adds scores up; ``auto``: ``tests`` for code, else ``majority``."""

PlanStyle = Literal["together", "apart"]
"""All paths in one call, or each in a call of its own, which knows nothing of the others."""


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


class TaskSettings(BaseModel):
    """What is done otherwise for one kind of task. ``None`` leaves a setting as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    straight: bool | None = None
    plan: bool | None = None
    paths: tuple[Mode, ...] | None = Field(default=None, min_length=1, max_length=60)
    quorum: int | None = Field(default=None, ge=0)
    max_refinements: int | None = Field(default=None, ge=0, le=10)
    reflect: bool | None = None
    verifier: Strategy | None = None


class Settings(BaseModel):
    """How the Conductor works on a problem. The defaults are the preset ``auto``.

    Example:
        >>> Settings(paths=("code", "code"), plan=False).quorum
        2
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    adapter: AdapterStyle = "fields"
    written_reasoning: bool = True
    """Ask for written reasoning. Off for Engines that reason internally: asking again would pay for it twice."""

    straight: bool = True
    """Follow as many default paths as must agree before anything is planned: where they do, no plan is paid for."""
    plan: bool = True
    """Let the Engine devise paths; off, or when its plan cannot be used, the default ``paths`` are followed."""
    plan_style: PlanStyle = "together"
    paths: tuple[Mode, ...] = Field(default=("code", "reason", "code", "reason"), min_length=1, max_length=60)
    """The default paths, likeliest first. Planned paths are followed in the same order of modes."""
    max_paths: int = Field(default=4, ge=1, le=60)
    """At most so many paths are followed in a round, the straight ones included."""
    wave: int = Field(default=2, ge=1)
    """So many paths are started at a time once those before them have disagreed."""
    completions: int = Field(default=1, ge=1, le=20)
    """Independent passes of plan, paths and reflection, all at once; the verifier sees the attempts of all."""
    quorum: int = Field(default=2, ge=0)
    """An answer that so many more paths give than any other ends the search: two that agree at once, or three against
    one. 1 takes the first answer that comes, 0 follows all paths."""
    max_refinements: int = Field(default=2, ge=0, le=10)
    """Rounds of correction on real feedback, for each path."""
    max_parts: int = Field(default=4, ge=2, le=12)
    """Parts that a path with mode ``decompose`` may have."""
    reflect: bool = True
    max_rounds: int = Field(default=2, ge=1, le=10)
    """Rounds in all; another one, with the problem in other words, is bought where the verifier is not convinced."""
    convinced: float = Field(default=0.5, ge=0.0, le=1.0)
    """The verifier's confidence that is enough."""

    verifier: Strategy = "auto"
    weights: dict[Scorer, float] = Field(default={"vote": 1.0, "compare": 1.0, "tests": 2.0})
    """For ``weighted``: how much each score counts."""
    judge_samples: int = Field(default=1, ge=1, le=20)
    """Judgements of each answer, where answers are judged on their own."""
    judge_rates: tuple[float, float] | None = None
    """How often this Engine calls a right answer right, and a wrong one; calibration measures it."""
    written_tests: bool = True
    """Let the Engine write inputs where visible tests cannot tell programs apart; the commonest behaviour wins."""
    tasks: dict[Task, TaskSettings] = Field(default={})
    """What is done otherwise for a kind of task."""

    planner_stage: StageSettings = StageSettings(temperature=0.7, max_tokens=1024)
    executor_stage: StageSettings = StageSettings(temperature=0.7)
    reflector_stage: StageSettings = StageSettings(temperature=0.3)
    verifier_stage: StageSettings = StageSettings(temperature=0.0)
    per_problem: Limits = Limits()
    exec_timeout: float = Field(default=10.0, gt=0)
    """Wall-clock seconds for one run of a program."""
    exec_memory_mb: int = Field(default=512, ge=64)

    @field_validator("weights")
    @classmethod
    def _weights_count(cls, weights: dict[Scorer, float]) -> dict[Scorer, float]:
        if any(weight < 0 for weight in weights.values()) or not any(weights.values()):
            raise ValueError("weights must not be negative, and one must be above 0")
        return weights

    @field_validator("judge_rates")
    @classmethod
    def _rates_are_chances(cls, rates: tuple[float, float] | None) -> tuple[float, float] | None:
        if rates is not None and not all(0 < rate < 1 for rate in rates):
            raise ValueError("both rates must lie between 0 and 1")
        return rates

    def at(self, task: Task) -> Settings:
        """The settings for a kind of task."""
        own = self.tasks.get(task)
        changes = {} if own is None else {name: value for name, value in own if value is not None}
        return self.model_copy(update=changes) if changes else self

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
