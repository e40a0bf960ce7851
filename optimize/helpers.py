"""Other models that help to compile: a teacher that makes demos, a model that writes instructions."""

from __future__ import annotations

from dataclasses import dataclass

from coda.errors import UsageError
from coda.optimize.config import CompileConfig
from coda.program.engine import Engine


@dataclass(frozen=True)
class Helpers:
    """The models that help; ``None`` where the Engine does it itself.

    Attributes:
        teacher: Makes demos.
        reflection: Writes instructions.
    """

    teacher: Engine | None = None
    reflection: Engine | None = None


def helping(engine: Engine, config: CompileConfig) -> Helpers:
    """Open the teacher and the reflection model, where they are named; they are companions of the Engine.

    Args:
        engine: The Engine that is compiled for; address and key are its own where no other are named.
        config: Names them.

    Raises:
        UsageError: One of them cannot be reached, or does not exist, or its prices would have to be known.
    """
    if engine.config.limits.max_usd is not None and (config.teacher_model or config.reflection_model):
        raise UsageError(
            "--max-usd cannot hold for --teacher-model and --reflection-model, whose prices are not known. "
            "Limit them with --max-tokens or --max-calls."
        )

    def open_(model: str | None, api_base: str | None, key: str | None) -> Engine | None:
        if model is None:
            return None
        own = engine.config
        other = {
            "model": model,
            "api_base": api_base or own.api_base,
            "api_key_env": key or own.api_key_env,
            "profile": None,
            "effort": None,
            "prices": None,
        }
        helper = engine.companion(own.model_copy(update=other))
        helper.check()
        return helper

    return Helpers(
        open_(config.teacher_model, config.teacher_api_base, config.teacher_api_key_env),
        open_(config.reflection_model, config.reflection_api_base, config.reflection_api_key_env),
    )
