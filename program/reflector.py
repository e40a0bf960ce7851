"""The reflector: where do the attempts disagree, and what is right?"""

from __future__ import annotations

import dspy

from coda.program.answers import extract
from coda.program.presentation import exhibits, statement
from coda.program.settings import Settings
from coda.program.stage import Stage
from coda.program.tools.sandbox import Sandbox
from coda.program.trial import try_program
from coda.program.types import Attempt, Problem
from coda.signatures.reflection import Reconcile, ReconcilePrograms


class Reflector(Stage):
    """Sees all attempts with their evidence and writes a consolidated one, which *joins* the attempts."""

    stage = "reflector"

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        super().__init__(settings.reflector_stage)
        self.settings = settings
        self.sandbox = sandbox
        self.reconcile = dspy.Predict(Reconcile)
        self.reconcile_programs = dspy.Predict(ReconcilePrograms)

    async def aforward(self, problem: Problem, attempts: tuple[Attempt, ...]) -> Attempt | None:
        """Reconcile the attempts; ``None`` where there is nothing to reconcile."""
        shown = tuple(attempt for attempt in attempts if attempt.reasoning or attempt.code)
        if not shown:
            return None
        if problem.task == "code":
            return await self._reconcile_programs(problem, shown)
        asked = await self.ask(self.reconcile, problem=statement(problem), attempts=exhibits(shown))
        answer = extract(asked.get("answer") or asked.text, problem.task, problem.choices)
        return Attempt(
            origin="reflection",
            answer=answer,
            reasoning=asked.get("inconsistencies") or asked.text,
            finish="unparsable" if asked.finish == "ok" and answer is None else asked.finish,
            error=asked.error,
        )

    async def _reconcile_programs(self, problem: Problem, shown: tuple[Attempt, ...]) -> Attempt:
        asked = await self.ask(self.reconcile_programs, problem=statement(problem), attempts=exhibits(shown))
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
