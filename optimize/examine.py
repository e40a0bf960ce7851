"""From a problem to its record: solve it, then grade the answer and every attempt on the way to it.

What goes wrong with one problem is that problem's result; only what is wrong with the set-up is raised.
"""

from __future__ import annotations

from collections.abc import Mapping

from coda.data.examples import Example
from coda.data.grading import agrade
from coda.errors import ArtifactError, BudgetExceeded, CodaError, DataError, EngineError, UsageError
from coda.optimize.identity import Program
from coda.optimize.records import NO_PLAN, NO_VERDICT, Fault, GradedAttempt, Record
from coda.program.answers import group
from coda.program.tools.sandbox import Sandbox
from coda.program.types import Attempt, Problem, Solution, Usage


async def solve(program: Program, problem: Problem) -> Solution:
    """Let a program solve a problem; an exception becomes a solution without an answer that says why.

    Raises:
        UsageError: The program is set up wrongly: no problem can be solved.
    """
    try:
        return await program.asolve(problem)
    except (UsageError, DataError, ArtifactError):
        raise
    except EngineError as error:
        return _ended(str(error), error.kind)
    except BudgetExceeded as error:
        return _ended(str(error), "budget")
    except Exception as error:  # a fault in one problem must not cost the others
        return _ended(_told(error), "unexpected")


async def examine(
    example: Example, sample: int, solution: Solution, stages: Mapping[str, Usage], sandbox: Sandbox | None = None
) -> Record:
    """Make a record of a solution.

    Equal answers are graded once. A problem that stopped without an answer is an error of the kind that stopped it.

    Args:
        example: The problem with its reference answer.
        sample: The number of the sample.
        solution: What the pipeline made of it.
        stages: What each stage's requests cost.
        sandbox: Where programs are graded; by default the process's own.

    Raises:
        CodaError: Nothing can be graded here, for want of a sandbox for example.
    """
    try:
        return await _examined(example, sample, solution, stages, sandbox)
    except CodaError:
        raise
    except Exception as error:  # a grader that fails on one answer must not cost the others
        ungraded = _ended(f"Grading failed: {_told(error)}", "grading")
        cost = {"usage": solution.usage, "seconds": solution.seconds}
        return await _examined(example, sample, ungraded.model_copy(update=cost), stages, sandbox)


async def _examined(
    example: Example, sample: int, solution: Solution, stages: Mapping[str, Usage], sandbox: Sandbox | None
) -> Record:
    scores = {answer: (await agrade(example, answer, sandbox=sandbox)).score for answer in _answers(solution)}
    final = _score(scores, solution.answer)
    problem = example.problem
    classes = await group([attempt.answer for attempt in solution.attempts], problem.task, problem.choices)
    return Record(
        id=example.id,
        sample=sample,
        problem=problem,
        answer=solution.answer,
        expected=example.answer,
        score=final,
        correct=final >= 1.0,
        error=_fault(solution),
        attempts=tuple(_graded(attempt, scores) for attempt in solution.attempts),
        classes=tuple(tuple(members) for members in classes),
        plan=solution.plan,
        verdict=solution.verdict,
        early_exit=solution.early_exit,
        restatements=solution.restatements,
        stopped=solution.stopped,
        stages=dict(stages),
        usage=solution.usage,
        seconds=solution.seconds,
    )


def _answers(solution: Solution) -> list[str]:
    attempts = [each for attempt in solution.attempts for each in (attempt, *attempt.earlier)]
    found = [solution.answer, *(each.answer for each in attempts)]
    return list(dict.fromkeys(answer for answer in found if answer is not None))


def _graded(attempt: Attempt, scores: Mapping[str, float]) -> GradedAttempt:
    score = _score(scores, attempt.answer)
    return GradedAttempt(
        **{**dict(attempt), "earlier": tuple(_graded(each, scores) for each in attempt.earlier)},
        score=score,
        correct=score >= 1.0,
    )


def _score(scores: Mapping[str, float], answer: str | None) -> float:
    return 0.0 if answer is None else scores[answer]


def _fault(solution: Solution) -> Fault | None:
    if solution.answer is not None or solution.stopped is None:
        return None
    return Fault(kind=solution.fault or "unexpected", message=solution.stopped)


def _ended(message: str, kind: str) -> Solution:
    return Solution(answer=None, verdict=NO_VERDICT, plan=NO_PLAN, stopped=message, fault=kind)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, CodaError) else f"{type(error).__name__}: {error}"
