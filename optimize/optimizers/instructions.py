"""Optimizers of instructions: ``copro``, ``gepa``, ``infer-rules``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dspy.teleprompt import COPRO, InferRules
from dspy.teleprompt.gepa import GEPA
from dspy.teleprompt.gepa.instruction_proposal import InstructionProposer

from coda.data.examples import Example
from coda.errors import UsageError
from coda.optimize.config import CompileConfig
from coda.optimize.optimizers.session import MANY, Session
from coda.optimize.optimizers.workbench import Candidate, Plan, Workbench
from coda.program.adapters import adapter_for

FEW = 4
"""Training problems without which no optimizer of instructions has anything to go by."""

RULES = 8
"""Rules that ``infer-rules`` may write."""


class ByRollouts:
    """What optimizers have in common that run a program again and again, until a limit is reached."""

    name = ""
    needs: tuple[str, ...] = ()

    def plan(self, config: CompileConfig, train: int) -> Plan:
        """All rollouts that it may make."""
        return Plan(rollouts=config.rollouts, validations=config.finalists)

    def check(self, train: Sequence[Example]) -> None:
        """It needs a few problems."""
        if len(train) < FEW:
            raise UsageError(
                f"--optimizer {self.name} needs at least {FEW} training problems, and there are {len(train)}. "
                "Raise --train, or give the benchmark more."
            )

    def candidates(self, bench: Workbench) -> Iterator[Candidate]:
        """Its finalists."""
        session = Session(bench, bench.program)

        def work() -> Any:
            session.look()
            return self.work(session)

        yield from session.finalists(self.name, session.run(work))

    def work(self, session: Session) -> Any:
        """Run DSPy's optimizer and return the student that it chose."""
        raise NotImplementedError


class Copro(ByRollouts):
    """`dspy.COPRO`: proposes instructions, one predictor after the other, and goes on from those that scored best."""

    name = "copro"

    def work(self, session: Session) -> Any:
        """Two rounds, on as many problems as the rollouts allow."""
        breadth = max(2, session.bench.config.candidates)
        problems = max(FEW, session.rollouts // (3 * breadth * len(session.names)))
        optimizer = COPRO(
            prompt_model=session.reflection_lm,
            metric=session.metric,
            breadth=breadth,
            depth=2,
            init_temperature=1.0,
        )
        options = {"num_threads": session.threads, "display_progress": False}
        return optimizer.compile(session.student(), trainset=session.train[:problems], eval_kwargs=options)


class Gepa(ByRollouts):
    """`dspy.GEPA`: reflects on what went wrong, with each predictor's own feedback, and writes better instructions."""

    name = "gepa"

    def work(self, session: Session) -> Any:
        """As many steps as the rollouts allow. Demos stay."""
        learn, choose = session.halves
        return gepa(session).compile(session.student(), trainset=learn, valset=choose)


def gepa(session: Session) -> GEPA:
    """DSPy's GEPA for a session."""
    return GEPA(
        metric=session.metric,
        max_metric_calls=session.rollouts,
        reflection_minibatch_size=3,
        reflection_lm=session.reflection_lm,
        instruction_proposer=InstructionProposer(adapter=adapter_for("fields")),
        component_selector=in_turn(session.names),
        use_merge=len(session.names) > 1,
        num_threads=session.threads,
        warn_on_score_mismatch=False,
        track_stats=False,
        seed=session.bench.config.seed,
    )


def in_turn(names: Sequence[str]) -> Callable[..., list[str]]:
    """Choose the predictor to be changed: each in turn, passing over those that took no part in the problems at hand.

    (GEPA's own round-robin would spend a minibatch on a predictor that nothing can be said about.)
    """
    turns = {"next": 0}

    def choose(
        state: Any, trajectories: Sequence[Any], scores: Any, index: int, candidate: dict[str, str]
    ) -> list[str]:
        told = [step[0].signature.instructions for each in trajectories for step in each["trace"]]
        for offset in range(len(names)):
            name = names[(turns["next"] + offset) % len(names)]
            if candidate.get(name) in told:
                turns["next"] += offset + 1
                return [name]
        turns["next"] += 1
        return [names[turns["next"] % len(names)]]

    return choose


class Rules(ByRollouts):
    """`dspy.InferRules`: bootstraps demos, induces rules from training problems, and adds them to the instructions."""

    name = "infer-rules"

    def work(self, session: Session) -> Any:
        """As many candidates as the rollouts allow."""
        config = session.bench.config
        learn, choose = session.halves
        affordable = (session.rollouts - len(learn)) // max(1, len(choose))
        optimizer = InferRules(
            num_candidates=max(1, min(config.candidates, affordable)),
            num_rules=RULES,
            num_threads=session.threads,
            metric=session.accepting,
            teacher_settings=session.teacher_settings,
            max_bootstrapped_demos=config.demos,
            max_labeled_demos=0,
            max_errors=MANY,
        )
        optimizer.rules_induction_program.teacher_settings = {"lm": session.reflection_lm}
        return optimizer.compile(session.student(), teacher=session.teacher(), trainset=learn, valset=choose)
