"""The options that commands share, and how they become an Engine and a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field

from coda.errors import UsageError
from coda.program.settings import Limits, Settings

if TYPE_CHECKING:
    from coda.experiments.tracking import Tracker
    from coda.program.conductor import Coda
    from coda.program.engine import Engine, EngineConfig
    from coda.program.engine.config import Prices
    from coda.program.tools.sandbox import Sandbox


class Options(BaseModel):
    """Base of all groups of options."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@Parameter(name="*")
class EngineOptions(Options):
    """Which model answers, and what it may cost."""

    model: str = "embedded"
    """"embedded", a GGUF file, openai/NAME with --api-base, or any model name that DSPy knows."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; the key itself is never stored."""
    profile: str | None = None
    """Engine profile by name, or a TOML file; by default chosen by the model's name."""
    effort: str | None = None
    """How hard it thinks: a level that its profile names (coda engine profile NAME), such as "low" or "off"."""
    concurrency: Annotated[int | None, Field(ge=1)] = None
    """Requests in flight at most; by default 8 for the embedded Engine, else 64."""
    timeout: Annotated[float, Field(gt=0)] = 600.0
    """Seconds to wait for one reply."""
    max_calls: Annotated[int | None, Field(ge=1)] = None
    """Requests that this command may make."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """Tokens, prompt and completion, that this command may use."""
    max_seconds: Annotated[float | None, Field(gt=0)] = None
    """Seconds that this command may ask the Engine for."""
    max_usd: Annotated[float | None, Field(gt=0)] = None
    """USD that this command may spend; needs --prices."""
    prices: str | None = None
    """What a million tokens cost in USD, prompt and completion, such as 0.15,0.60."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of everything that is drawn at random."""
    cache_dir: Path | None = None
    """Keep replies here and never pay for the same request twice; off by default."""

    def config(self, *, cache_dir: Path | None = None) -> EngineConfig:
        """What the Engine is made from; ``cache_dir`` is where replies are kept if the user has not named a folder."""
        from coda.program.engine import EngineConfig

        return EngineConfig(
            model=self.model,
            api_base=self.api_base,
            api_key_env=self.api_key_env,
            profile=self.profile,
            effort=self.effort,
            prices=read_prices(self.prices, "--prices"),
            concurrency=self.concurrency,
            timeout=self.timeout,
            seed=self.seed,
            cache_dir=self.cache_dir or cache_dir,
            limits=self.limits(),
        )

    def limits(self) -> Limits:
        """What the command may cost.

        Raises:
            UsageError: A limit in USD without prices.
        """
        if self.max_usd is not None and self.prices is None:
            raise UsageError("--max-usd needs --prices PROMPT,COMPLETION: USD for a million tokens, such as 0.15,0.60.")
        return Limits(
            max_calls=self.max_calls, max_tokens=self.max_tokens, max_seconds=self.max_seconds, max_usd=self.max_usd
        )

    def open(self, calls: Path | None = None, *, cache_dir: Path | None = None) -> Engine:
        """Make the Engine and check that it can be reached.

        Args:
            calls: The file of its ledger.
            cache_dir: Where replies are kept if the user has not named a folder.
        """
        from coda.program.engine import Engine
        from coda.program.engine.ledger import Ledger

        engine = Engine(self.config(cache_dir=cache_dir), ledger=Ledger(calls))
        engine.check()
        return engine


@Parameter(name="*")
class ProgramOptions(Options):
    """Which pipeline works on the problem."""

    program: Path | None = None
    """Folder of a compiled pipeline."""
    preset: Literal["fast", "auto", "thorough", "published"] | None = None
    """How much thought a problem gets (coda preset NAME prints it); by default what suits the model's profile."""
    settings: Path | None = None
    """TOML file with settings of the pipeline."""
    set: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """One setting, as NAME=VALUE; may be repeated. Values are read as TOML."""
    verifier_model: str | None = None
    """Another model for the verifier; it counts in the same limits."""
    verifier_api_base: str | None = None
    """Address of its server; by default the Engine's."""
    verifier_api_key_env: str | None = None
    """Name of the environment variable that holds its key; by default the Engine's."""
    verifier_prices: str | None = None
    """What a million of its tokens cost in USD, prompt and completion."""
    unsafe_local_exec: Annotated[bool, Parameter(negative=())] = False
    """Run model-written programs WITHOUT a sandbox where none can be had. They can then do all that you can."""

    def sandbox(self) -> Sandbox:
        """The sandbox, with a word about it on stderr where it is less than full."""
        from coda.cli.console import note
        from coda.program.tools.sandbox import shared_sandbox

        sandbox = shared_sandbox(unsafe=self.unsafe_local_exec)
        if sandbox.level == "off":
            note(f"Code paths are off: {sandbox.why}")
        elif sandbox.level == "unsafe":
            note("WARNING: programs written by the model run without a sandbox (--unsafe-local-exec).")
        return sandbox

    def build(self, engine: Engine) -> Coda:
        """Make the program: compiled, from settings, or as the Engine's profile suggests."""
        from coda.program.conductor import Coda

        sandbox = self.sandbox()
        verifier = self._verifier(engine)
        if self.program is not None:
            if self.preset is not None:
                raise UsageError("--preset and --program exclude each other: a compiled pipeline has its settings.")
            from coda.cli.console import note
            from coda.optimize.artifact import load, read_manifest

            program = load(self.program, engine=engine, sandbox=sandbox)
            program.verifier.engine = verifier
            for caveat in read_manifest(self.program).caveats(model=engine.config.model):
                note(caveat)
            return program if not self._changes() else program.with_settings(self._apply(program.settings))
        return Coda(self._apply(self._base(engine)), engine=engine, verifier_engine=verifier, sandbox=sandbox)

    def _base(self, engine: Engine) -> Settings:
        """Settings from the file, from the preset, or as the model's profile has them."""
        from coda.program.presets import preset

        if self.settings is not None and self.preset is not None:
            raise UsageError("--settings and --preset exclude each other: copy the preset's TOML, and change it there.")
        if self.settings is not None:
            return Settings.from_toml(self.settings)
        return engine.profile.settings() if self.preset is None else preset(self.preset, engine.profile.stages)

    def _verifier(self, engine: Engine) -> Engine | None:
        """The verifier's own Engine, where one is asked for."""
        if self.verifier_model is None:
            if self.verifier_api_base or self.verifier_api_key_env or self.verifier_prices:
                raise UsageError(
                    "--verifier-api-base, --verifier-api-key-env and --verifier-prices need --verifier-model."
                )
            return None
        config = engine.config.model_copy(
            update={
                "model": self.verifier_model,
                "api_base": self.verifier_api_base or engine.config.api_base,
                "api_key_env": self.verifier_api_key_env or engine.config.api_key_env,
                "prices": read_prices(self.verifier_prices, "--verifier-prices") or engine.config.prices,
                "profile": None,
                "effort": None,
            }
        )
        other = engine.companion(config)
        other.check()
        return other

    def _changes(self) -> dict[str, Any]:
        import tomllib

        changes: dict[str, Any] = {}
        for item in self.set:
            name, equals, value = item.partition("=")
            if not equals:
                raise UsageError(f"--set {item}: give it as NAME=VALUE, such as --set quorum=3.")
            try:
                parsed = tomllib.loads(f"value = {value}")["value"]
            except tomllib.TOMLDecodeError:
                parsed = value
            changes[name.strip()] = parsed
        return changes

    def _apply(self, settings: Settings) -> Settings:
        return Settings.parse({**settings.model_dump(), **self._changes()}, where="--set")


@Parameter(name="*")
class TrackingOptions(Options):
    """Where MLflow keeps the run."""

    tracking_uri: str | None = None
    """An MLflow server or store; by default runs/mlflow.db."""
    experiment: str = "coda"
    """The MLflow experiment."""
    trace: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of problems whose stages are traced in MLflow, from 0 to 1."""

    def tracker(self, *, register: bool = False) -> Tracker:
        """The tracker; it opens its store at the first run.

        Args:
            register: Whether what is compiled goes into the model registry.
        """
        from coda.experiments.tracking import Tracker

        return Tracker(
            self.tracking_uri, directory=Path("runs"), experiment=self.experiment, trace=self.trace, register=register
        )


def read_prices(text: str | None, option: str) -> Prices | None:
    """Prices from "PROMPT,COMPLETION".

    Raises:
        UsageError: They are no two numbers of at least 0.
    """
    from coda.program.engine.config import Prices

    if text is None:
        return None
    try:
        prompt, completion = (float(part) for part in text.split(","))
        return Prices(prompt=prompt, completion=completion)
    except ValueError as error:
        raise UsageError(
            f"{option} {text}: give USD for a million tokens of prompt and of completion, such as 0.15,0.60."
        ) from error


Json = Annotated[bool, Parameter(name="--json", negative=())]
"""Print one JSON document on stdout."""
