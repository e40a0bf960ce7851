"""What an Engine is made from."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from coda.program.settings import Limits


class Prices(BaseModel):
    """What a million tokens cost, in USD."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class EngineConfig(BaseModel):
    """Which model answers, where, and within which limits.

    It never holds a key: ``api_key_env`` names the environment variable from which the key is read for each request.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(default="embedded", min_length=1)
    """``embedded``, a GGUF file, ``openai/NAME`` with ``api_base``, or any model name that DSPy knows."""
    api_base: str | None = None
    api_key_env: str | None = None
    profile: str | None = None
    """A profile's name or TOML file; chosen by the model's name where it is ``None``."""
    effort: str | None = None
    """How hard it thinks: one of the levels that its profile names. ``None`` takes the profile's default."""
    concurrency: int | None = Field(default=None, ge=1)
    """Requests in flight at most; by default 8 for the embedded Engine, else 64."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds to wait for one reply."""
    max_retries: int = Field(default=4, ge=0)
    """How often a request that failed is sent again; waiting out a rate limit does not count."""
    seed: int | None = None
    cache_dir: Path | None = None
    """Where replies are kept, so that the same request is never paid for twice. ``None`` keeps none."""
    cache_mb: int = Field(default=1024, ge=1)
    """Size of that cache; the replies that were not used for the longest time give way."""
    prices: Prices | None = None
    """What its tokens cost; a limit in USD needs them."""
    limits: Limits = Limits()

    @property
    def embedded(self) -> bool:
        """Whether the model runs in a server of this process's own."""
        return self.model == "embedded" or self.model.lower().endswith(".gguf")

    @property
    def over_http(self) -> bool:
        """Whether it is reached by CODA's own transport: OpenAI's protocol, at any address."""
        return self.embedded or self.model.startswith("openai/")
