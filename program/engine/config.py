"""What an Engine is made from."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from coda.program.settings import Limits


class EngineConfig(BaseModel):
    """Which model answers, where, and within which limits.

    It never holds a key: ``api_key_env`` names the environment variable from which the key is read for each request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "embedded"
    """``embedded``, a GGUF file, ``openai/NAME`` with ``api_base``, or any model name that DSPy knows."""
    api_base: str | None = None
    api_key_env: str | None = None
    profile: str | None = None
    """A profile's name or TOML file; chosen by the model's name where it is ``None``."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests in flight at most; by default 8 for the embedded Engine, else 64."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds to wait for one reply."""
    max_retries: int = Field(default=4, ge=0)
    seed: int | None = None
    cache_dir: Path | None = None
    limits: Limits = Limits()
