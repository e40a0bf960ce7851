"""Engine profiles: what is known of a model family, as TOML that users can add to."""

from __future__ import annotations

import fnmatch
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coda.errors import UsageError
from coda.program.settings import Settings

Thinking = Literal["none", "tags", "field"]


class Effort(BaseModel):
    """One level of how hard a family thinks, and how it is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    thinking_tokens: int = Field(default=0, ge=0)
    """Room for the thinking, added to what a stage allows for the answer."""
    parameters: dict[str, Any] = {}
    """Parameters of a request that ask for this level."""
    suffix: str = ""
    """Text after the last message that asks for it (``/no_think``)."""
    stages: dict[str, Any] = {}
    """Settings of the pipeline that suit this level, over those of the family."""


class Profile(BaseModel):
    """How a family of models behaves.

    Example:
        >>> profile_for("openai/Qwen/Qwen3-8B").level("off").suffix
        ' /no_think'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    models: tuple[str, ...] = ()
    """Patterns of model names (shell style, without regard to case)."""
    thinking: Thinking = "tags"
    """Where it thinks: not at all, between tags in the reply, or in a field of its own."""
    tags: tuple[str, str] = ("<think>", "</think>")
    """What opens and closes the thinking; the opening tag may be missing in a reply, some servers swallow it."""
    efforts: tuple[Effort, ...] = ()
    """Levels of effort, the least first; empty where there is no choice."""
    effort: str | None = None
    """The level that is used unless another is asked for."""
    max_tokens: int = Field(default=4096, ge=1)
    """Tokens of an answer, where a stage does not say."""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    context: int = Field(default=32768, ge=256)
    """Tokens of prompt and reply together, until the server says otherwise."""
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """Where a stage does not say."""
    lowest_temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Families that fall into repetition when they decode greedily are kept above it."""
    takes_temperature: bool = True
    system_role: bool = True
    """Whether it heeds a system message; else its text goes before the first user message."""
    longer_once: bool = True
    """Whether a reply that was cut off is worth asking for again with more room."""
    flaky_requests: bool = False
    """Whether its servers refuse good requests (400) now and then, so that it pays to send them again."""
    parameters: dict[str, Any] = {}
    """Further parameters of every request."""
    stages: dict[str, Any] = {}
    """Settings of the pipeline that suit this family."""

    def settings(self) -> Settings:
        """The pipeline's settings for this family."""
        return Settings.parse(self.stages, where=f"Profile {self.name}, table [stages]")

    def level(self, name: str | None) -> Effort:
        """The level of effort of that name, or the default.

        Raises:
            UsageError: The family has no such level.
        """
        wanted = name or self.effort
        found = next((level for level in self.efforts if level.name == wanted), None)
        if found is not None:
            return found
        if name is None:
            return Effort(name="")
        known = ", ".join(level.name for level in self.efforts) or "none at all"
        raise UsageError(f"Profile {self.name} has no level of effort {name!r}. Its levels: {known}.")

    def at(self, name: str | None) -> Profile:
        """The profile with another level of effort as its default, and the settings that suit it.

        Raises:
            UsageError: The family has no such level.
        """
        level = self.level(name)
        return self.model_copy(update={"effort": level.name or None, "stages": {**self.stages, **level.stages}})

    def less_than(self, name: str) -> str | None:
        """The next lower level of effort; ``None`` where there is none."""
        names = [level.name for level in self.efforts]
        return names[names.index(name) - 1] if name in names[1:] else None


def load_profile(name_or_path: str) -> Profile:
    """Load a profile by name or from a TOML file.

    Raises:
        UsageError: There is none, or it is malformed.
    """
    if name_or_path.endswith(".toml"):
        file = Path(name_or_path)
        try:
            return _parse(file.read_text("utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text file"
            raise UsageError(f"Profile {file}: {reason}. Give a profile's name or a TOML file.") from error
    found = own_profiles().get(name_or_path)
    if found is None:
        known = ", ".join(own_profiles())
        raise UsageError(f"There is no profile {name_or_path!r}. Known: {known}; or give a TOML file.")
    return found


def profile_for(model: str) -> Profile:
    """The profile of the family that a model's name points to; ``generic`` where none does."""
    name = "smollm2-135m" if model == "embedded" else model.lower()
    for profile in own_profiles().values():
        if any(fnmatch.fnmatchcase(name, pattern.lower()) for pattern in profile.models):
            return profile
    return own_profiles()["generic"]


@cache
def own_profiles() -> dict[str, Profile]:
    """The profiles that come with CODA, by name."""
    folder = files("coda.program.engine") / "profiles"
    found = sorted((item for item in folder.iterdir() if item.name.endswith(".toml")), key=lambda item: item.name)
    profiles = [_parse(item.read_text("utf-8"), item.name) for item in found]
    return {profile.name: profile for profile in profiles}


def _parse(text: str, where: str) -> Profile:
    try:
        profile = Profile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"Profile {where} is not valid TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"Profile {where}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    profile.settings()
    if profile.effort is not None:
        profile.level(profile.effort)
    return profile
