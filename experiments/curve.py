"""What the budget bought: a compilation's scores over the requests and tokens spent, as MLflow curves."""

from __future__ import annotations

from coda.experiments.tracking import TrackedRun
from coda.optimize.records import Record
from coda.optimize.summary import Summary
from coda.program.engine import Engine


class Curve:
    """Watches a compilation's measurements, and logs the best validation score after each.

    ``best/by_calls`` and ``score/by_calls`` have the requests spent so far as their step, ``best/by_tokens``
    and ``score/by_tokens`` the tokens. A measurement that the budget cut short is no point of the curve.

    Args:
        run: The compilation's run.
        engine: The Engine that pays.
        split: The split whose scores count.
    """

    def __init__(self, run: TrackedRun, engine: Engine, split: str = "validation") -> None:
        self._run = run
        self._engine = engine
        self._split = split
        self._best: float | None = None

    def on_start(self, total: int, finished: int) -> None:
        """Nothing to log yet."""

    def on_result(self, record: Record) -> None:
        """Nothing to log yet."""

    def on_end(self, summary: Summary) -> None:
        """A measurement has ended: a point of the curve, if it is whole and on the right split."""
        if summary.split != self._split or summary.stopped is not None:
            return
        self._best = summary.score if self._best is None else max(self._best, summary.score)
        spent = self._engine.budget.usage
        for unit, step in (("calls", spent.calls), ("tokens", spent.tokens)):
            self._run.metrics({f"best/by_{unit}": self._best, f"score/by_{unit}": summary.score}, step=step)
