"""The executor: follows the paths, runs the programs, and corrects them on real feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import dspy

from coda.program.answers import extract
from coda.program.concurrency import Branches
from coda.program.events import emit
from coda.program.presentation import statement
from coda.program.settings import Settings
from coda.program.stage import Asked, Stage, without_written_reasoning
from coda.program.tools.sandbox import Sandbox
from coda.program.trial import succeeded, try_program
from coda.program.types import Attempt, Path, Problem
from coda.signatures.execution import Reason, RepairProgram, WriteFunction, WriteProgram

Agreement = Callable[[Problem, tuple[Attempt, ...]], Awaitable[bool]]

TURNS_PER_PATH = 16
"""Requests that one path can make; keeps the turns of different paths apart."""


class Executor(Stage):
    """Follows paths in parallel until enough attempts agree."""

    stage = "executor"

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        super().__init__(settings.executor_stage)
        self.settings = settings
        self.sandbox = sandbox
        self.reason = dspy.Predict(Reason if settings.written_reasoning else without_written_reasoning(Reason))
        self.code = dspy.Predict(WriteProgram)
        self.function = dspy.Predict(WriteFunction)
        self.repair = dspy.Predict(RepairProgram)

    async def aforward(self, problem: Problem, paths: tuple[Path, ...], agreed: Agreement) -> tuple[Attempt, ...]:
        """Follow the paths: first as many as must agree, then, if they do not, all the others at once.

        Args:
            problem: The problem.
            paths: The plan's paths, likeliest first.
            agreed: Says whether attempts agree; then nothing more is started, and what still runs is cancelled.

        Returns:
            The attempts that ended, in the order of their paths.
        """
        first = self.settings.quorum
        attempts = await self._wave(problem, paths[:first], 0, (), agreed)
        if len(paths) > first and not await agreed(problem, attempts) and not _out_of_budget(attempts):
            attempts += await self._wave(problem, paths[first:], first, attempts, agreed)
        return attempts

    async def _wave(
        self, problem: Problem, paths: tuple[Path, ...], offset: int, before: tuple[Attempt, ...], agreed: Agreement
    ) -> tuple[Attempt, ...]:
        """Follow paths at once; once the attempts agree, cancel those that still run."""
        branches = Branches()
        tasks = [branches.start(self.follow(problem, path, offset + i)) for i, path in enumerate(paths)]
        pending = set(tasks)
        try:
            while pending:
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                if pending and await agreed(problem, before + _ended(tasks)):
                    break
        finally:
            await branches.close()
        return _ended(tasks)

    async def follow(self, problem: Problem, path: Path, index: int) -> Attempt:
        """Follow one path to an attempt.

        Args:
            problem: The problem.
            path: The path.
            index: Its place among the problem's paths.
        """
        turn = index * TURNS_PER_PATH
        if path.mode == "code" or problem.task == "code":
            attempt = await self._by_program(problem, path, turn)
        else:
            attempt = await self._by_reasoning(problem, path, turn)
        emit("attempt", problem, attempt)
        return attempt

    async def _by_reasoning(self, problem: Problem, path: Path, turn: int) -> Attempt:
        asked = await self.ask(self.reason, turn=turn, problem=statement(problem), approach=directions(path))
        answer = extract(asked.get("answer") or asked.text, problem.task, problem.choices)
        return Attempt(
            path=path,
            answer=answer,
            reasoning=asked.get("reasoning") or asked.text,
            finish="unparsable" if asked.finish == "ok" and answer is None else asked.finish,
            error=asked.error,
        )

    async def _by_program(self, problem: Problem, path: Path, turn: int) -> Attempt:
        """Write a program, run it, and correct it on what happened."""
        write = self.function if problem.task == "code" else self.code
        asked = await self.ask(write, turn=turn, problem=statement(problem), approach=directions(path))
        attempt = await self._run(problem, path, asked)
        for round_ in range(1, self.settings.max_refinements + 1):
            if attempt.execution is None or succeeded(problem, attempt.execution):
                break
            asked = await self.ask(
                self.repair,
                turn=turn + round_,
                problem=statement(problem),
                failed_program=attempt.code,
                feedback=attempt.execution.feedback,
            )
            corrected = await self._run(problem, path, asked)
            if corrected.code is None or corrected.code == attempt.code:
                break
            earlier = (*attempt.earlier, attempt.model_copy(update={"earlier": ()}))
            attempt = corrected.model_copy(update={"refinements": round_, "earlier": earlier})
        return attempt

    async def _run(self, problem: Problem, path: Path, asked: Asked) -> Attempt:
        """Run the program in a reply; one without a program may still state an answer."""
        program = asked.get("program")
        if not program:
            return Attempt(
                path=path,
                answer=None if problem.task == "code" else extract(asked.text, problem.task, problem.choices),
                reasoning=asked.text,
                finish="unparsable" if asked.finish == "ok" else asked.finish,
                error=asked.error,
            )
        execution = await try_program(self.sandbox, problem, program, self.settings)
        answer = program if problem.task == "code" else None
        if answer is None and execution.outcome == "ok":
            answer = extract(execution.stdout, problem.task, problem.choices)
        return Attempt(path=path, answer=answer, code=program, execution=execution, finish=asked.finish)


def directions(path: Path) -> str:
    """A path's approach and steps, as the Engine reads them; empty for a default path."""
    steps = "\n".join(f"{n}. {step}" for n, step in enumerate(path.steps, start=1))
    return "\n".join(part for part in (path.approach, steps) if part)


def _ended(tasks: list[asyncio.Task[Attempt]]) -> tuple[Attempt, ...]:
    """The attempts of finished tasks, in starting order; an exception in one is raised."""
    return tuple(task.result() for task in tasks if task.done() and not task.cancelled())


def _out_of_budget(attempts: tuple[Attempt, ...]) -> bool:
    return any(attempt.finish == "budget" for attempt in attempts)
