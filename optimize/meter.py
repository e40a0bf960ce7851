"""What a problem's requests cost, stage by stage."""

from __future__ import annotations

from coda.program.engine.budget import Budget
from coda.program.engine.labels import current_labels
from coda.program.types import Usage


class StageMeter(Budget):
    """A budget without limits that also knows which stage spent what."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: dict[str, Usage] = {}

    def settle(self, tokens: int, cost: Usage) -> None:
        """Count a request."""
        super().settle(tokens, cost)
        self._note(cost)

    def charge(self, cost: Usage) -> None:
        """Count an answer that needed no request."""
        super().charge(cost)
        self._note(cost)

    def _note(self, cost: Usage) -> None:
        stage = current_labels().stage or "other"
        self.stages[stage] = self.stages.get(stage, Usage()) + cost
