"""Optimizers of demos and instructions together: ``mipro``, ``simba``, ``better-together``."""

from __future__ import annotations

from typing import Any

from dspy.teleprompt import SIMBA, BetterTogether, BootstrapFewShotWithRandomSearch, MIPROv2

from coda.optimize.optimizers.instructions import ByRollouts, gepa
from coda.optimize.optimizers.session import MANY, Session

BATCH = 8
"""Problems on which ``simba`` tries its candidates."""


class Mipro(ByRollouts):
    """`dspy.MIPROv2`: bootstraps sets of demos, proposes instructions, and searches their combinations with optuna."""

    name = "mipro"
    needs: tuple[str, ...] = ("optuna",)

    def work(self, session: Session) -> Any:
        """As many trials as the rollouts allow, each on half of the problems to choose by."""
        config = session.bench.config
        learn, choose = session.halves
        batch = max(1, len(choose) // 2)
        trials = max(1, (session.rollouts - config.candidates * len(learn) // 2 - 2 * len(choose)) // batch)
        optimizer = MIPROv2(
            metric=session.accepting,
            prompt_model=session.reflection_lm,
            task_model=session.lm,
            teacher_settings=session.teacher_settings,
            max_bootstrapped_demos=config.demos,
            max_labeled_demos=0,
            auto=None,
            num_candidates=config.candidates,
            num_threads=session.threads,
            max_errors=MANY,
            seed=config.seed + 1,  # it takes 0 for no seed
        )
        return optimizer.compile(
            session.student(),
            teacher=session.teacher(),
            trainset=learn,
            valset=choose,
            num_trials=trials,
            minibatch=True,
            minibatch_size=batch,
            program_aware_proposer=False,
        )


class Simba(ByRollouts):
    """`dspy.SIMBA`: looks at problems that come out now right and now wrong, and writes down what made the difference.

    Its own demos are off: it takes every call of a lucky run for one, wrong attempts included. Those that the program
    has stay.
    """

    name = "simba"

    def work(self, session: Session) -> Any:
        """As many steps as the rollouts allow."""
        config = session.bench.config
        size = min(BATCH, len(session.train))
        per_step = size * (2 * config.candidates + 1)
        optimizer = SIMBA(
            metric=session.metric,
            bsize=size,
            num_candidates=config.candidates,
            max_steps=max(1, session.rollouts // per_step),
            max_demos=0,
            prompt_model=session.reflection_lm,
            num_threads=session.threads,
        )
        return optimizer.compile(session.student(), trainset=session.train, seed=config.seed)


class Together(ByRollouts):
    """`dspy.BetterTogether`: demos by random search, then instructions by GEPA, then demos for those instructions."""

    name = "better-together"

    def work(self, session: Session) -> Any:
        """Half of the rollouts are for the instructions."""
        config = session.bench.config
        learn, choose = session.halves
        demos = BootstrapFewShotWithRandomSearch(
            metric=session.accepting,
            max_bootstrapped_demos=config.demos,
            max_labeled_demos=0,
            num_candidate_programs=max(1, session.rollouts // (8 * max(1, len(choose)))),
            num_threads=session.threads,
            max_errors=MANY,
        )
        instructions = gepa(session)
        instructions.max_metric_calls = max(1, session.rollouts // 2)
        # Its teacher is the student as it is: with other instructions, a teacher counts as another program.
        student = session.teacher()
        student.set_lm(session.lm)
        optimizer = BetterTogether(metric=session.accepting, demos=demos, instructions=instructions)
        return optimizer.compile(
            student,
            trainset=learn,
            valset=choose,
            num_threads=session.threads,
            max_errors=MANY,
            seed=config.seed,
            strategy="demos -> instructions -> demos",
        )
