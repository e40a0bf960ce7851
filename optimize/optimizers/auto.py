"""The default: demos, then GEPA's instructions for planner and reflector, on top of what calibration found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from coda.data.examples import Example
from coda.optimize.config import CompileConfig
from coda.optimize.optimizers.demos import RandomSearch, sets_in_turn
from coda.optimize.optimizers.instructions import FEW, Gepa
from coda.optimize.optimizers.session import Session
from coda.optimize.optimizers.workbench import Candidate, Plan, Workbench

DEMOS = 0.4
"""The share of the search's budget after which no further set of demos is made; the rest is for GEPA."""

STAGES = ("planner", "reflector")
"""Stages whose instructions it writes: those that steer. The executor learns from demos."""


class Auto:
    """Demos by random search; then, from the best of them, instructions by GEPA; all measured together.

    The budget is split like this: sets of demos, with their measurement on validation, have two fifths (`DEMOS`) of the
    calls and tokens; GEPA has what is left once its finalists can be measured; then the finalists are. Each candidate
    is the whole program, so that the choice among them is the joint check: instructions that do not go with the demos
    lose to the demos alone.
    """

    name = "auto"
    needs: tuple[str, ...] = ()

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """Both together."""
        demos, instructions = RandomSearch().plan(config, train), Gepa().plan(config, train)
        return Plan(demos.rollouts + instructions.rollouts, demos.validations + instructions.validations)

    def check(self, train: Sequence[Example]) -> None:
        """Any problems do; with fewer than GEPA needs, there are demos alone."""

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """Sets of demos, then GEPA's finalists with the best of the sets."""
        before = bench.budget.usage
        for candidate in sets_in_turn(bench, bench.config.candidates, share=DEMOS):
            yield candidate
            if bench.spent(before) >= DEMOS:
                break
        stages = bench.config.stages or self._steering(bench)
        if not stages or len(bench.train) < FEW:
            return
        session = Session(bench, bench.best, only=stages)

        def work() -> Any:
            session.look()
            return Gepa().work(session)

        yield from session.finalists("gepa", session.run(work))

    def _steering(self, bench: Workbench) -> tuple[str, ...]:
        """The steering stages that the calibrated program has at all; the executor where it has none."""
        settings = bench.best.settings.at(bench.train[0].problem.task)
        used = {"planner": settings.plan, "reflector": settings.reflect}
        return tuple(stage for stage in STAGES if used[stage]) or ("executor",)
