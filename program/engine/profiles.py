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


class Profile(BaseModel):
    """How a family of models behaves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    models: tuple[str, ...] = ()
    """Patterns of model names (shell style, without regard to case)."""
    thinking: Thinking = "none"
    """Where it thinks: not at all, between <think> tags in the reply, or in a field of its own."""
    max_tokens: int = Field(default=4096, ge=1)
    """Tokens of a reply, thinking included, where a stage does not say."""
    context: int = Field(default=32768, ge=256)
    temperature: float | None = None
    """Overrides a stage's temperature, for families that take only one."""
    parameters: dict[str, Any] = {}
    """Further parameters of every request."""
    stages: dict[str, Any] = {}
    """Settings of the pipeline that suit this family."""

    def settings(self) -> Settings:
        """The pipeline's settings for this family."""
        return Settings.parse(self.stages, where=f"Profile {self.name}, table [stages]")


def load_profile(name_or_path: str) -> Profile:
    """Load a profile by name or from a TOML file.

    Raises:
        UsageError: There is none, or it is malformed.
    """
    if name_or_path.endswith(".toml"):
        file = Path(name_or_path)
        try:
            return _parse(file.read_text("utf-8"), str(file))
        except OSError as error:
            raise UsageError(f"Profile {file}: {error.strerror}. Give a profile's name or a TOML file.") from error
    found = _own().get(name_or_path)
    if found is None:
        raise UsageError(f"There is no profile {name_or_path!r}. Known: {', '.join(_own())}; or give a TOML file.")
    return found


def profile_for(model: str) -> Profile:
    """The profile of the family that a model's name points to; ``generic`` where none does."""
    name = "smollm2-135m" if model == "embedded" else model.lower()
    for profile in _own().values():
        if any(fnmatch.fnmatch(name, pattern.lower()) for pattern in profile.models):
            return profile
    return _own()["generic"]


@cache
def _own() -> dict[str, Profile]:
    folder = files("coda.program.engine") / "profiles"
    found = sorted((item for item in folder.iterdir() if item.name.endswith(".toml")), key=lambda item: item.name)
    profiles = [_parse(item.read_text("utf-8"), item.name) for item in found]
    return {profile.name: profile for profile in profiles}


def _parse(text: str, where: str) -> Profile:
    try:
        return Profile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"Profile {where} is not valid TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"Profile {where}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
