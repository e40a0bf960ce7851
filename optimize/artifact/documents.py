"""What the files of an artefact hold. The names of the fields are promises; docs/artefact.md explains them.

All models refuse names that they do not know: a file can carry nothing into a request but what is listed here.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final, Literal

from pydantic import Field, JsonValue

from coda import __version__
from coda.optimize.identity import git_revision
from coda.program.settings import AdapterStyle, Settings
from coda.program.types import Frozen, Mode, Task, Usage

SCHEMA_VERSION = 2
"""Of the artefact as a whole. Raise it with a function in `coda.optimize.artifact.migrations.MIGRATIONS`."""


KIND: Final = "coda-artefact"
"""What tells a manifest from other files of that name."""


class PredictorState(Frozen):
    """What makes a predictor's prompt, besides the inputs."""

    signature: str
    """Hash of the names, roles and types of the signature's fields."""
    instructions: str
    fields: dict[str, str]
    """The description of each field."""
    demos: tuple[dict[str, JsonValue], ...] = ()
    """As the optimizer left them: a demo may lack an input."""


class ProgramState(Frozen):
    """``program.json``: the whole program."""

    settings: Settings
    predictors: dict[str, PredictorState]


class Trials(Frozen):
    """How often something worked."""

    successes: int = Field(ge=0)
    trials: int = Field(ge=0)


class ModeTrials(Trials):
    """How often a mode led to a right answer, in one adapter style, on problems of one kind."""

    task: Task
    adapter: AdapterStyle
    mode: Mode
    readable: int | None = None
    """Replies that kept to the format, where that was counted."""


class Policy(Frozen):
    """``policy.json``: what calibration learned about the Engine, and on how much evidence.

    The program does not read it: what was concluded from it stands in the settings.
    """

    adapter: AdapterStyle | None = None
    """The style that was chosen; ``None`` where nothing was calibrated."""
    modes: dict[Task, tuple[Mode, ...]] = Field(default_factory=dict)
    """Modes worth trying, likeliest first."""
    counts: tuple[ModeTrials, ...] = ()
    choices: dict[str, dict[str, Trials]] = Field(default_factory=dict)
    """Other things that were tried, each with its options: ``{"plan": {"on": …, "off": …}}``."""


class SplitReference(Frozen):
    """A split that was used."""

    n: int
    digest: str


class BenchmarkReference(Frozen):
    """The benchmark that the program was compiled for."""

    name: str
    digest: str
    splits: dict[str, SplitReference] = Field(default_factory=dict)


class Score(Frozen):
    """What a program reached on a split."""

    program: str
    """``single``, ``baseline``, ``compiled``, …"""
    split: str
    n: int
    accuracy: float
    ci95: tuple[float, float]
    usage: Usage = Usage()
    seconds: float = 0.0


class Gain(Frozen):
    """The compiled program against another on the same problems."""

    against: str
    split: str
    n: int
    difference: float
    ci95: tuple[float, float]
    gained: int
    lost: int
    p: float


class Cost(Usage):
    """What compiling cost."""

    seconds: float = 0.0
    usd: float | None = None
    """``None`` where prices are not known."""


def _versions() -> dict[str, str]:
    return {"coda": __version__, "dspy": version("dspy"), "python": platform.python_version()}


class Manifest(Frozen):
    """``manifest.json``: where the program comes from, what it was measured at, and the hashes of all other files."""

    kind: Literal["coda-artefact"] = KIND
    schema_version: int = SCHEMA_VERSION
    model: str
    profile: str
    effort: str | None = None
    """How hard the model was to think; ``None`` for its profile's default."""
    benchmark: BenchmarkReference | None = None
    optimizer: str = ""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """What compiling was asked for: seed, number of candidates, budget, …"""
    scores: tuple[Score, ...] = ()
    gains: tuple[Gain, ...] = ()
    cost: Cost = Cost()
    versions: dict[str, str] = Field(default_factory=_versions)
    git_revision: str | None = Field(default_factory=git_revision)
    created: datetime = Field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each other file, by its path in the folder; filled in when the artefact is saved."""

    def caveats(self, *, model: str | None = None) -> list[str]:
        """What differs here from where the program was compiled; each a sentence.

        Args:
            model: The model that the program is to be used with.
        """
        here: dict[str, Any] = _versions()
        found = [
            f"It was compiled with {name} {there}, and this is {name} {here[name]}."
            for name, there in self.versions.items()
            if name in here and _compared(name, there) != _compared(name, here[name])
        ]
        if model is not None and model != self.model:
            found.insert(0, f"It was compiled for {self.model}, and {model} may want other prompts: measure it.")
        return found


def _compared(name: str, number: str) -> str:
    """Of Python, the feature release; a bugfix release changes no prompt."""
    return number.rpartition(".")[0] if name == "python" else number
