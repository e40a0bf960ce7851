"""A compiled pipeline as an MLflow model, written as code: MLflow copies this file and runs it where the model is used.

The model is this file and the artefact's JSON; nothing is pickled. Where the Engine is comes from the environment of
the process that uses the model, so that no address and no key is in any file:

    CODA_MODEL          the model, as ``--model`` takes it; by default the one that the pipeline was compiled for
    CODA_API_BASE       the address of an OpenAI-compatible server
    CODA_API_KEY_ENV    the name of the variable that holds the key
    CODA_MAX_CALLS      requests that the process may make in all; by default any number
"""

import logging
import os
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from coda.optimize.artifact import load, read_manifest
from coda.program.concurrency import gather_ordered, run_sync
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.profiles import own_profiles
from coda.program.settings import Limits
from coda.program.types import Problem, Solution

log = logging.getLogger("coda.served")

ARTEFACT = "artefact"
"""The name of the compiled pipeline's folder in the model."""


class CompiledPipeline(PythonModel):
    """Solves problems: a row with ``problem`` (and ``task``, where it is not mathematics) for each."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the pipeline and open its Engine."""
        folder = Path(context.artifacts[ARTEFACT])
        manifest = read_manifest(folder)
        model = os.environ.get("CODA_MODEL") or manifest.model
        for caveat in manifest.caveats(model=model):
            log.warning(caveat)
        own = model == manifest.model and manifest.profile in own_profiles()
        limit = os.environ.get("CODA_MAX_CALLS")
        config = EngineConfig(
            model=model,
            api_base=os.environ.get("CODA_API_BASE") or None,
            api_key_env=os.environ.get("CODA_API_KEY_ENV") or None,
            profile=manifest.profile if own else None,
            effort=manifest.effort if own else None,
            limits=Limits(max_calls=int(limit) if limit else None),
        )
        self.program: Coda = load(folder, engine=Engine(config))

    def predict(
        self, context: PythonModelContext, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Solve the problems, all at once.

        Returns:
            A row for each: ``answer``, ``confidence`` from 0 to 1, and ``stopped``, which says why the pipeline ended
            early where it did (a budget, a server that is down).
        """
        rows = model_input.to_dict("records")
        problems = [_problem(row["problem"], row.get("task")) for row in rows]
        solutions: list[Solution] = run_sync(gather_ordered(self.program.asolve(problem) for problem in problems))
        return pd.DataFrame(
            [{"answer": each.answer, "confidence": each.confidence, "stopped": each.stopped} for each in solutions],
            columns=["answer", "confidence", "stopped"],
        )


def _problem(text: str, task: Any) -> Problem:
    """The problem of a row; pandas gives a number that is none for a task that is left out."""
    return Problem.model_validate({"text": text, "task": task if isinstance(task, str) else "math"})


set_model(CompiledPipeline())
