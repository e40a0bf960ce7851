"""Every set of prompts that an optimizer tried, with the scores it got: the best is chosen here, not by the optimizer.

An optimizer that is halted returns nothing, and one that ends may return what was lucky in a small sample. What it
tried is therefore noted as it comes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import dspy

from coda.errors import CodaError
from coda.optimize.metric import Accepting, StageMetric
from coda.optimize.optimizers.gate import Gate
from coda.optimize.optimizers.student import Prompts

PRIOR = 4
"""A candidate's mean is shrunk towards the mean of all as if it had so many more scores of that value."""


@dataclass
class Trial:
    """A set of prompts and its scores, by example; a later score of the same example takes the earlier one's place."""

    prompts: Prompts
    scores: dict[str, float] = field(default_factory=dict)


class Trials:
    """All that was tried. Safe to write from many threads."""

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._lock = threading.Lock()

    def note(self, prompts: Prompts, example: str, score: float) -> None:
        """Note a score."""
        with self._lock:
            self._trials.setdefault(prompts.key, Trial(prompts)).scores[example] = score

    def best(self, n: int, *, but: Prompts) -> list[Prompts]:
        """The ``n`` best, best first, without the one that is known already (``but``)."""
        with self._lock:
            trials = {key: trial for key, trial in self._trials.items() if key != but.key}
            scores = [score for trial in self._trials.values() for score in trial.scores.values()]
        mean = sum(scores) / len(scores) if scores else 0.0

        def merit(key: str) -> tuple[float, int, str]:
            own = trials[key].scores
            return (sum(own.values()) + PRIOR * mean) / (len(own) + PRIOR), len(own), key

        return [trials[key].prompts for key in sorted(trials, key=merit, reverse=True)[:n]]

    def __len__(self) -> int:
        return len(self._trials)


class Noting:
    """A metric that notes what it scores; not while demos are made, when it is a teacher that is scored.

    What it cannot score at all, for want of a sandbox for example, halts the optimizer: DSPy would take it for a 0.
    """

    def __init__(self, metric: StageMetric | Accepting, trials: Trials, gate: Gate) -> None:
        self._metric = metric
        self._trials = trials
        self._gate = gate

    def __call__(
        self,
        gold: dspy.Example,
        pred: dspy.Prediction,
        trace: Any = None,
        pred_name: Any = None,
        pred_trace: Any = None,
    ) -> Any:
        """Score as the metric does."""
        told = (pred_name, pred_trace) if pred_name is not None else ()
        try:
            score = self._metric(gold, pred, trace, *told)
        except CodaError as error:
            self._gate.halt(error)
            raise
        prompts = getattr(pred, "prompts", None)
        if not told and trace is None and prompts is not None:
            self._trials.note(prompts, gold.id, float(score))
        return score
