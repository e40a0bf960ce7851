"""The reflector: where do the attempts disagree, and what is right?"""

from __future__ import annotations

import dspy

from coda.program.answers import extract
from coda.program.engine.lm import EngineLM
from coda.program.presentation import exhibits, statement
from coda.program.settings import Settings
from coda.program.stage import Asked, Stage
from coda.program.tools.sandbox import Sandbox
from coda.program.trial import try_program
from coda.program.types import Attempt, Problem
from coda.signatures.reflection import Reconcile, ReconcilePrograms, Restate

CHARS_PER_TOKEN = 3
"""Fewer than English has (about 4): programs and formulas have more tokens."""

UNKNOWN_CONTEXT = 8192
"""Tokens of prompt and reply that any Engine takes."""


class Reflector(Stage):
    """Sees all attempts with their evidence and writes a consolidated one, which *joins* the attempts."""

    stage = "reflector"

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        super().__init__(settings.reflector_stage)
        self.settings = settings
        self.sandbox = sandbox
        self.reconcile = dspy.Predict(Reconcile)
        self.reconcile_programs = dspy.Predict(ReconcilePrograms)
        self.restate = dspy.Predict(Restate)

    async def aforward(self, problem: Problem, attempts: tuple[Attempt, ...]) -> Attempt | None:
        """Reconcile the attempts; ``None`` where there is nothing to reconcile."""
        predictor = self.reconcile_programs if problem.task == "code" else self.reconcile
        asked = await self._shown(predictor, problem, attempts)
        if asked is None:
            return None
        if problem.task == "code":
            return await self._tried(problem, asked)
        answer = extract(asked.get("answer") or asked.text, problem.task, problem.choices)
        return Attempt(
            origin="reflection",
            answer=answer,
            reasoning=asked.get("inconsistencies") or asked.text,
            finish="unparsable" if asked.finish == "ok" and answer is None else asked.finish,
            error=asked.error,
        )

    async def restated(self, problem: Problem, attempts: tuple[Attempt, ...]) -> str:
        """The problem in other words, in the light of attempts that do not convince; empty where none came."""
        asked = await self._shown(self.restate, problem, attempts)
        return (asked.get("restatement") or asked.text).strip() if asked is not None and asked.finish == "ok" else ""

    async def _shown(self, predictor: dspy.Predict, problem: Problem, attempts: tuple[Attempt, ...]) -> Asked | None:
        """Show the attempts that have something to show, as far as there is room; ``None`` where none has."""
        shown = tuple(attempt for attempt in attempts if attempt.reasoning or attempt.code)
        if not shown:
            return None
        text = statement(problem)
        room = max(0, self._room(predictor) - len(text))
        return await self.ask(predictor, problem=text, attempts=exhibits(shown, room=room))

    def _room(self, predictor: dspy.Predict) -> int:
        """Characters that problem and attempts may have together: half of the context, since replies need some too."""
        lm = predictor.lm or dspy.settings.lm
        context = lm.coda.profile.context if isinstance(lm, EngineLM) else UNKNOWN_CONTEXT
        return context * CHARS_PER_TOKEN // 2

    async def _tried(self, problem: Problem, asked: Asked) -> Attempt:
        program = asked.get("program")
        if not program:
            return Attempt(origin="reflection", reasoning=asked.text, finish=asked.finish, error=asked.error)
        execution = await try_program(self.sandbox, problem, program, self.settings)
        return Attempt(
            origin="reflection",
            answer=program,
            code=program,
            reasoning=asked.get("inconsistencies"),
            execution=execution,
            finish=asked.finish,
        )
