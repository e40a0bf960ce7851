"""The executor: follows the paths, runs the programs, and corrects them on real feedback."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Awaitable, Callable

import dspy

from coda.program.answers import extract, parsed
from coda.program.concurrency import Branches
from coda.program.events import emit
from coda.program.presentation import solved_parts, statement
from coda.program.settings import Settings
from coda.program.stage import Asked, Stage, without_written_reasoning
from coda.program.tools.registry import Toolbox, use
from coda.program.tools.sandbox import Sandbox
from coda.program.trial import read_run, succeeded, try_program
from coda.program.types import Attempt, Finish, Part, Path, Problem
from coda.signatures.execution import (
    Combine,
    Decompose,
    Reason,
    RepairProgram,
    SolvePart,
    WriteFunction,
    WriteProgram,
)

Agreement = Callable[[Problem, tuple[Attempt, ...]], Awaitable[bool]]

TURNS_PER_PATH = 16
"""Requests that one path can make; keeps the turns of different paths apart."""


class Executor(Stage):
    """Follows paths in parallel until enough attempts agree."""

    stage = "executor"

    def __init__(self, settings: Settings, sandbox: Sandbox, toolbox: Toolbox | None = None) -> None:
        super().__init__(settings.executor_stage)
        self.settings = settings
        self.sandbox = sandbox
        self.toolbox = toolbox or Toolbox()
        written = settings.written_reasoning

        def predictor(signature: type[dspy.Signature]) -> dspy.Predict:
            return dspy.Predict(signature if written else without_written_reasoning(signature))

        self.reason = predictor(Reason)
        self.code = dspy.Predict(WriteProgram)
        self.function = dspy.Predict(WriteFunction)
        self.repair = dspy.Predict(RepairProgram)
        self.decompose = dspy.Predict(Decompose)
        self.part = predictor(SolvePart)
        self.combine = predictor(Combine)

    async def aforward(
        self,
        problem: Problem,
        paths: tuple[Path, ...],
        agreed: Agreement,
        before: tuple[Attempt, ...] = (),
        offset: int = 0,
    ) -> tuple[Attempt, ...]:
        """Follow paths, a wave at a time, until attempts agree; what still runs then is cancelled.

        The first wave has as many paths as must agree, each later one ``Settings.wave``; where nothing can end the
        search early, all start at once.

        Args:
            problem: The problem.
            paths: They, likeliest first.
            agreed: Says whether attempts agree.
            before: Attempts that were made already, in this round or an earlier one.
            offset: How many paths this pass has followed already.

        Returns:
            The attempts that ended, in the order of their paths, without those made before.
        """
        quorum = self.settings.at(problem.task).quorum
        attempts: tuple[Attempt, ...] = ()
        while len(attempts) < len(paths) and not _stopped(attempts):
            size = len(paths) if not quorum else self.settings.wave if before or attempts else quorum
            start = len(attempts)
            wave = paths[start : start + size]
            attempts += await self._wave(problem, wave, offset + start, (*before, *attempts), agreed)
            if len(attempts) < start + len(wave) or await agreed(problem, (*before, *attempts)):
                break
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
        elif path.mode == "decompose":
            attempt = await self._by_parts(problem, path, turn)
        else:
            attempt = await self._by_reasoning(problem, path, turn)
        emit("attempt", problem, attempt)
        return attempt

    async def _by_reasoning(self, problem: Problem, path: Path, turn: int) -> Attempt:
        asked = await self.ask(self.reason, turn=turn, problem=statement(problem), approach=directions(path))
        return _stated(problem, path, asked)

    async def _by_parts(self, problem: Problem, path: Path, turn: int) -> Attempt:
        """Solve the parts one after the other, then put them together. What cannot be split is reasoned out whole."""
        text = statement(problem)
        questions, finish = await self._questions(text, path, turn)
        if len(questions) < 2 and finish != "budget":
            return await self._by_reasoning(problem, path, turn + 1)
        parts: tuple[Part, ...] = ()
        for number, question in enumerate(questions, start=1):
            asked = await self.ask(
                self.part, turn=turn + number, problem=text, solved=solved_parts(parts), part=question
            )
            answer = (asked.get("answer") or asked.text).strip()
            if not answer:
                return Attempt(path=path, parts=parts, finish=_unless_ok(asked.finish), error=asked.error)
            parts = (*parts, Part(question=question, answer=answer))
        asked = await self.ask(self.combine, turn=turn, problem=text, solved=solved_parts(parts))
        return _stated(problem, path, asked).model_copy(update={"parts": parts})

    async def _questions(self, text: str, path: Path, turn: int) -> tuple[list[str], Finish]:
        """The parts: as planned, else as the Engine splits the problem now."""
        most = self.settings.max_parts
        if len(path.steps) > 1:
            return [step.action for step in path.steps][:most], "ok"
        asked = await self.ask(self.decompose, turn=turn, problem=text, approach=directions(path))
        listed = getattr(asked.fields, "parts", None) or _LIST_ITEM.findall(asked.text)
        return [str(part).strip() for part in listed if str(part).strip()][:most], asked.finish

    async def _by_program(self, problem: Problem, path: Path, turn: int) -> Attempt:
        """Write a program, run it, and correct it on what happened, until it works or nothing new comes."""
        write = self.function if problem.task == "code" else self.code
        offer = self.toolbox.offer() if problem.task != "code" else ""
        approach = "\n\n".join(part for part in (directions(path), offer) if part)
        asked = await self.ask(write, turn=turn, problem=statement(problem), approach=approach)
        attempt = await self._run(problem, path, asked)
        seen = {_essence(attempt.code)}
        for round_ in range(1, self.settings.at(problem.task).max_refinements + 1):
            if attempt.execution is None or succeeded(attempt.execution):
                break
            asked = await self.ask(
                self.repair,
                turn=turn + round_,
                problem=statement(problem),
                failed_program=attempt.code,
                feedback=attempt.execution.feedback,
            )
            if _essence(asked.get("program")) in seen:
                break
            corrected = await self._run(problem, path, asked)
            if corrected.code is None:
                break
            seen.add(_essence(corrected.code))
            earlier = (*attempt.earlier, attempt.model_copy(update={"earlier": ()}))
            attempt = corrected.model_copy(update={"refinements": round_, "earlier": earlier})
        return attempt

    async def _run(self, problem: Problem, path: Path, asked: Asked) -> Attempt:
        """Run the program in a reply; one without a program may still state an answer."""
        chosen = self.toolbox.chosen(asked.text) if problem.task != "code" else None
        program = asked.get("program") if chosen is None else chosen[1]
        if not program:
            return Attempt(
                path=path,
                answer=None if problem.task == "code" else extract(asked.text, problem.task, problem.choices),
                reasoning=asked.text,
                finish=_unless_ok(asked.finish),
                error=asked.error,
            )
        if chosen is None:
            execution = await try_program(self.sandbox, problem, program, self.settings)
        else:
            execution = read_run(problem, await use(chosen[0], program, seconds=self.settings.exec_timeout))
        answer = program if problem.task == "code" else None
        if answer is None and execution.outcome == "ok":
            answer = extract(execution.stdout, problem.task, problem.choices)
        return Attempt(path=path, answer=answer, code=program, execution=execution, finish=asked.finish)


_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\(?\d+[.):]|part \d+:?)[ \t]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)


def directions(path: Path) -> str:
    """A path's approach and steps, as the Engine reads them; empty for a default path."""
    steps = "\n".join(f"{n}. {step.action}" for n, step in enumerate(path.steps, start=1))
    return "\n".join(part for part in (path.approach, steps) if part)


def _stated(problem: Problem, path: Path, asked: Asked) -> Attempt:
    """The attempt in a reply that states an answer in words."""
    answer = extract(asked.get("answer") or asked.text, problem.task, problem.choices)
    return Attempt(
        path=path,
        answer=answer,
        reasoning=asked.get("reasoning") or asked.text,
        finish=asked.finish if answer is not None else _unless_ok(asked.finish),
        error=asked.error,
    )


def _unless_ok(finish: Finish) -> Finish:
    """How an attempt without an answer ended."""
    return "unparsable" if finish == "ok" else finish


def _essence(program: str | None) -> str:
    """A program without its comments and layout: the same mistake in another layout is the same attempt."""
    tree = parsed(program or "")
    return ast.dump(tree) if tree is not None else " ".join((program or "").split())


def _ended(tasks: list[asyncio.Task[Attempt]]) -> tuple[Attempt, ...]:
    """The attempts of finished tasks, in starting order; an exception in one is raised."""
    return tuple(task.result() for task in tasks if task.done() and not task.cancelled())


def _stopped(attempts: tuple[Attempt, ...]) -> bool:
    return any(attempt.finish == "budget" for attempt in attempts)
