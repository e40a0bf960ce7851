"""The Conductor: the method, in one screen."""

from __future__ import annotations

import time
from collections.abc import Sequence

import dspy

from coda.errors import UsageError
from coda.program.adapters import adapter_for
from coda.program.concurrency import gather_ordered, on_background_loop, run_sync
from coda.program.engine import Engine
from coda.program.engine.budget import Budget, spending
from coda.program.engine.labels import labelled
from coda.program.events import emit
from coda.program.executor import Executor
from coda.program.planner import Planner
from coda.program.reflector import Reflector
from coda.program.settings import Settings
from coda.program.stage import noting_troubles, passing
from coda.program.story import Pass, Story
from coda.program.tools.registry import Tool, Toolbox
from coda.program.tools.sandbox import Sandbox, shared_sandbox
from coda.program.types import Attempt, Mode, Plan, Problem, Solution, Verdict
from coda.program.verifier import Verifier

OTHER_WORDS = "The same problem in other words:"


class Coda(dspy.Module):
    """Orchestrates an Engine: plan, execute, reflect, verify; as much of it as the problem needs.

    Args:
        settings: How to work; by default what suits the Engine's profile, else ``Settings()``.
        engine: The Engine that `solve` and `asolve` use. Called as a DSPy module, the program uses DSPy's current LM,
            as optimizers expect.
        verifier_engine: Another Engine for the verifier; by default it is the same.
        sandbox: Where programs run; by default the process's own.
        tools: What programs may be written for besides Python; see `coda.program.tools.registry`.

    Example:
        >>> with Engine(EngineConfig(model="embedded")) as engine:  # doctest: +SKIP
        ...     Coda(engine=engine).solve(Problem(text="What is 17 * 23?")).answer
        '391'
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        engine: Engine | None = None,
        verifier_engine: Engine | None = None,
        sandbox: Sandbox | None = None,
        tools: Sequence[Tool] = (),
    ) -> None:
        super().__init__()
        self.settings = settings or (engine.profile.settings() if engine is not None else Settings())
        self.engine = engine
        self.sandbox = sandbox or shared_sandbox()
        self.planner = Planner(self.settings)
        self.executor = Executor(self.settings, self.sandbox, Toolbox(tools))
        self.reflector = Reflector(self.settings, self.sandbox)
        self.verifier = Verifier(self.settings, self.sandbox, verifier_engine)

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
        other = Coda(settings, engine=self.engine, verifier_engine=self.verifier.engine, sandbox=self.sandbox)
        other.executor.toolbox = self.executor.toolbox
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
        return ("reason", "code", "decompose") if self.sandbox.available else ("reason", "decompose")

    async def _conduct(self, problem: Problem, story: Story) -> Verdict:
        """Go round by round, until the verifier is convinced or nothing more may be spent."""
        settings, text = self.settings.at(problem.task), problem
        while True:
            story.begin()
            first = (story.rounds - 1) * settings.completions
            for done in await gather_ordered(self._pass(text, story, first + i) for i in range(settings.completions)):
                story.add(done)
            verdict: Verdict = await self.verifier.acall(problem, story.attempts)
            emit("verdict", problem, verdict)
            story.early_exit = await self.verifier.agreed(problem, story.attempts)
            convinced = story.early_exit or verdict.confidence >= settings.convinced
            if convinced or story.rounds >= settings.max_rounds or story.hopeless():
                return verdict
            text = await self._in_other_words(problem, story, first)

    async def _pass(self, problem: Problem, story: Story, number: int) -> Pass:
        """Plan, follow the paths, and reconcile what they gave; each only if what came before it did not agree."""
        settings, modes, before = self.settings.at(problem.task), self.modes(problem), story.attempts
        agreed, plan, done = self.verifier.agreed, Plan(paths=()), False
        attempts: tuple[Attempt, ...] = ()
        with passing(number):
            if settings.straight and settings.plan and settings.quorum and not before:
                plan = self.planner.default_plan(problem, modes).first(settings.quorum)
                emit("plan", problem, plan)
                attempts = await self.executor.acall(problem, plan.paths, agreed)
                done = await agreed(problem, attempts) or story.hopeless(attempts)
            if not attempts or not done:
                more = await self.planner.acall(problem, modes, len(plan.paths))
                emit("plan", problem, more)
                seen = (*before, *attempts)
                attempts += await self.executor.acall(problem, more.paths, agreed, seen, len(plan.paths))
                plan = plan.followed_by(more)
                done = await agreed(problem, (*before, *attempts)) or story.hopeless(attempts)
            if settings.reflect and not done:
                consolidated = await self.reflector.acall(problem, (*before, *attempts))
                if consolidated is not None:
                    emit("reflection", problem, consolidated)
                    attempts += (consolidated,)
        return Pass(plan, attempts)

    async def _in_other_words(self, problem: Problem, story: Story, number: int) -> Problem:
        """The problem for another round: as it was given, and as the reflector states it anew."""
        if not self.settings.at(problem.task).reflect:
            return problem
        with passing(number):
            restatement = await self.reflector.restated(problem, story.attempts)
        story.restatements.append(restatement)
        if not restatement:
            return problem
        return problem.model_copy(update={"text": f"{problem.text}\n\n{OTHER_WORDS}\n{restatement}"})

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
            story = Story(troubles)
            verdict = await self._conduct(problem, story)
        solution = Solution(
            answer=verdict.answer,
            confidence=verdict.confidence,
            verdict=verdict,
            plan=story.plan,
            attempts=story.attempts,
            early_exit=story.early_exit,
            rounds=story.rounds,
            restatements=tuple(story.restatements),
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
