"""Stage feedback makes GEPA find what planner and reflector lack; without it, it does not within the same budget."""

from __future__ import annotations

from local_engine import LocalEngine
from weak_engine import X, Y, found, weak

ROLLOUTS = 60


def test_with_stage_feedback_both_weaknesses_are_mended() -> None:
    with LocalEngine(weak, keep=False) as server:
        assert found(server.api_base, rollouts=ROLLOUTS, seed=0, by_stage=True) == {X, Y}


def test_with_the_final_grade_alone_they_are_not() -> None:
    with LocalEngine(weak, keep=False) as server:
        assert found(server.api_base, rollouts=ROLLOUTS, seed=0, by_stage=False) != {X, Y}
