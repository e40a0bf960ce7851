"""What all stages share: asking the Engine through a predictor, and turning faults into data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from coda.errors import BudgetExceeded, EngineError
from coda.program.adapters import SignatureClass, adapter_for
from coda.program.engine import Engine
from coda.program.engine.labels import current_labels, labelled
from coda.program.engine.replies import capture
from coda.program.settings import StageSettings
from coda.program.types import Finish

_troubles: ContextVar[list[Trouble] | None] = ContextVar("coda_troubles", default=None)
_passes: ContextVar[int] = ContextVar("coda_pass", default=0)


@dataclass(frozen=True)
class Trouble:
    """What stopped a request.

    Attributes:
        kind: ``budget``, or how the Engine failed.
        message: What happened.
    """

    kind: str
    message: str


@contextmanager
def noting_troubles() -> Iterator[list[Trouble]]:
    """Collect what stopped requests within the block (a budget, an Engine that is down), in the order it happened."""
    troubles: list[Trouble] = []
    token = _troubles.set(troubles)
    try:
        yield troubles
    finally:
        _troubles.reset(token)


@dataclass(frozen=True)
class Asked:
    """What came of asking.

    Attributes:
        finish: How it ended; only ``ok`` and ``truncated`` have a prediction.
        fields: The prediction, or ``None``.
        text: The reply as it came, without the thinking.
        error: What went wrong, where something did.
    """

    finish: Finish
    fields: dspy.Prediction | None = None
    text: str = ""
    error: str | None = None

    def get(self, name: str) -> str:
        """A field's text; empty where there is none."""
        value = getattr(self.fields, name, None) if self.fields is not None else None
        return value if isinstance(value, str) else ""


class Stage(dspy.Module):
    """A stage of the pipeline: predictors with one name in the ledger and one set of sampling settings.

    Args:
        sampling: How it samples.
        engine: An Engine of its own, asked in the adapter style that suits it; by default DSPy's current LM is asked.
    """

    stage = "stage"

    def __init__(self, sampling: StageSettings, engine: Engine | None = None) -> None:
        super().__init__()
        self.sampling = sampling
        self.engine = engine

    async def ask(
        self, predictor: dspy.Predict, *, turn: int = 0, sampling: StageSettings | None = None, **inputs: Any
    ) -> Asked:
        """Ask the Engine once.

        Args:
            predictor: One of this stage's predictors.
            turn: Tells apart requests of one problem that would otherwise be identical, so that sampling them twice
                gives two samples; see `_rollout`.
            sampling: How to sample this time; by default as the stage does.
            **inputs: The signature's inputs.

        Returns:
            The prediction, or how it failed. Faults of the Engine, a reply that cannot be read, and an exhausted
            budget are results here: no stage loses what the others have already found.
        """
        with self._own_engine(), labelled(stage=self.stage, attempt=turn), capture() as replies:
            try:
                config = _config(predictor, turn, sampling or self.sampling)
                fields = await predictor.acall(config=config, **inputs)
            except BudgetExceeded as error:
                return _trouble("budget", error)
            except EngineError as error:
                return _trouble("failed", error)
            except AdapterParseError as error:
                finish: Finish = "truncated" if replies and replies[-1].finish == "length" else "unparsable"
                return Asked(finish, None, replies[-1].text if replies else error.lm_response, "unreadable reply")
        reply = replies[-1] if replies else None
        return Asked(
            "truncated" if reply is not None and reply.finish == "length" else "ok",
            fields,
            reply.text if reply is not None else "",
        )

    def _own_engine(self) -> AbstractContextManager[None]:
        if self.engine is None:
            return nullcontext()
        context: AbstractContextManager[None] = dspy.context(
            lm=self.engine.lm, adapter=adapter_for(self.engine.profile.settings().adapter)
        )
        return context


def _config(predictor: dspy.Predict, turn: int, sampling: StageSettings) -> dict[str, Any]:
    config: dict[str, Any] = {k: v for k, v in sampling.model_dump().items() if v is not None}
    if config.get("temperature") != 0.0:
        config["rollout_id"] = _rollout(predictor, turn)
    return config


def _rollout(predictor: dspy.Predict, turn: int) -> int:
    """Number a sample by what asks for it: the optimizer's own rollout, the evaluator's sample, the pass, the turn."""
    lm = predictor.lm or dspy.settings.lm
    outer = (getattr(lm, "kwargs", None) or {}).get("rollout_id") or 0
    return ((int(outer) * 1000 + (current_labels().sample or 0)) * 1000 + _passes.get()) * 1000 + turn


@contextmanager
def passing(number: int) -> Iterator[None]:
    """Tell the samples of one pass through the stages from those of another; ``number`` is unique to the problem."""
    token = _passes.set(number)
    try:
        yield
    finally:
        _passes.reset(token)


def _trouble(finish: Finish, error: Exception) -> Asked:
    troubles = _troubles.get()
    if troubles is not None:
        troubles.append(Trouble(error.kind if isinstance(error, EngineError) else "budget", str(error)))
    return Asked(finish, error=str(error))


def without_written_reasoning(signature: SignatureClass) -> SignatureClass:
    """The signature for an Engine that reasons internally: it is not asked to write its reasoning down once more."""
    return signature.delete("reasoning") if "reasoning" in signature.output_fields else signature
