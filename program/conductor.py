"""The Conductor: the method, in one screen."""

from __future__ import annotations

import time

import dspy

from coda.errors import UsageError
from coda.program.adapters import adapter_for
from coda.program.concurrency import on_background_loop, run_sync
from coda.program.engine import Engine
from coda.program.engine.budget import Budget, spending
from coda.program.engine.labels import labelled
from coda.program.events import emit
from coda.program.executor import Executor
from coda.program.planner import Planner
from coda.program.reflector import Reflector
from coda.program.settings import Settings
from coda.program.stage import noting_troubles
from coda.program.tools.sandbox import Sandbox, shared_sandbox
from coda.program.types import Attempt, Mode, Plan, Problem, Solution, Verdict
from coda.program.verifier import Verifier


class Coda(dspy.Module):
    """Orchestrates an Engine: plan, execute, reflect, verify; as much of it as the problem needs.

    Args:
        settings: How to work; by default what suits the Engine's profile, else ``Settings()``.
        engine: The Engine that `solve` and `asolve` use. Called as a DSPy module, the program uses DSPy's current LM,
            as optimizers expect.
        sandbox: Where programs run; by default the process's own.

    Example:
        >>> with Engine(EngineConfig(model="embedded")) as engine:  # doctest: +SKIP
        ...     Coda(engine=engine).solve(Problem(text="What is 17 * 23?")).answer
        '391'
    """

    def __init__(
        self, settings: Settings | None = None, *, engine: Engine | None = None, sandbox: Sandbox | None = None
    ) -> None:
        super().__init__()
        self.settings = settings or (engine.profile.settings() if engine is not None else Settings())
        self.engine = engine
        self.sandbox = sandbox or shared_sandbox()
        self.planner = Planner(self.settings)
        self.executor = Executor(self.settings, self.sandbox)
        self.reflector = Reflector(self.settings, self.sandbox)
        self.verifier = Verifier(self.settings)

    @property
    def own_engine(self) -> Engine:
        """The program's own Engine.

        Raises:
            UsageError: It has none.
        """
        if self.engine is None:
            raise UsageError("This program has no Engine of its own: make it with Coda(engine=…).")
        return self.engine

    def with_settings(self, settings: Settings) -> Coda:
        """A program with other settings, and this one's Engine, sandbox, instructions and demos."""
        other = Coda(settings, engine=self.engine, sandbox=self.sandbox)
        mine = dict(self.named_predictors())
        for name, predictor in other.named_predictors():
            predictor.demos = list(mine[name].demos)
            predictor.signature = predictor.signature.with_instructions(mine[name].signature.instructions)
            predictor.lm = mine[name].lm
        return other

    def modes(self, problem: Problem) -> tuple[Mode, ...]:
        """The ways in which this problem can be worked on here; without a sandbox, in words alone."""
        if problem.task == "code":
            return ("code",)
        return ("reason", "code") if self.sandbox.available else ("reason",)

    async def _conduct(self, problem: Problem) -> tuple[Plan, tuple[Attempt, ...], bool, Verdict]:
        plan = await self.planner.acall(problem, self.modes(problem))
        emit("plan", problem, plan)
        attempts = await self.executor.acall(problem, plan.paths, self.verifier.agreed)
        agreed = await self.verifier.agreed(problem, attempts)
        if not agreed and self.settings.reflect:
            consolidated = await self.reflector.acall(problem, attempts)
            if consolidated is not None:
                emit("reflection", problem, consolidated)
                attempts += (consolidated,)
        verdict = await self.verifier.acall(problem, attempts)
        emit("verdict", problem, verdict)
        return plan, attempts, agreed, verdict

    async def aforward(self, problem: Problem) -> dspy.Prediction:
        """Solve a problem; the prediction holds ``answer`` and ``solution`` (a `Solution`)."""
        started = time.monotonic()
        emit("problem", problem)
        with (
            dspy.context(lm=self._lm(), adapter=adapter_for(self.settings.adapter)),
            labelled(problem=problem.key),
            spending(Budget(self.settings.per_problem)) as budget,
            noting_troubles() as troubles,
        ):
            plan, attempts, agreed, verdict = await self._conduct(problem)
        solution = Solution(
            answer=verdict.answer,
            confidence=verdict.confidence,
            verdict=verdict,
            plan=plan,
            attempts=attempts,
            early_exit=agreed,
            stopped=troubles[0].message if troubles else None,
            fault=troubles[0].kind if troubles else None,
            usage=budget.usage,
            seconds=time.monotonic() - started,
        )
        emit("solution", problem, solution)
        return dspy.Prediction(answer=solution.answer, solution=solution)

    def forward(self, problem: Problem) -> dspy.Prediction:
        """Solve a problem, for synchronous callers such as DSPy's optimizers."""
        return run_sync(self.aforward(problem=problem))

    async def asolve(self, problem: Problem) -> Solution:
        """Solve a problem with this program's Engine.

        An Engine that fails or a budget that ends is no exception: ``Solution.stopped`` says it, and the best answer
        so far is kept.

        Raises:
            UsageError: There is no Engine.
        """
        with dspy.context(lm=self.engine.lm if self.engine is not None else dspy.settings.lm):
            prediction = await on_background_loop(self.acall(problem=problem))
        solution: Solution = prediction.solution
        return solution

    def _lm(self) -> dspy.BaseLM:
        """DSPy's current LM, which an optimizer may have set, else this program's Engine."""
        lm = dspy.settings.lm or (self.engine.lm if self.engine is not None else None)
        if lm is None:
            raise UsageError("No Engine: give Coda(engine=…), or configure DSPy with an LM.")
        return lm

    def solve(self, problem: Problem) -> Solution:
        """Solve a problem with this program's Engine and wait for it; see `asolve`."""
        return run_sync(self.asolve(problem))
