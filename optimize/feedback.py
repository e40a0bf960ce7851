"""What a stage is told about its part in a problem's result: precise enough to write a better instruction from.

Texts are made from the problem's record, in which every attempt is graded, and name what really happened: the path that
worked, the failing line, the right answer that was dropped. Predictors are known by their stage alone (the part of
their name before the dot), so that a stage can gain predictors without anything to change here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from coda.optimize.measures import diversity, every_graded
from coda.optimize.records import GradedAttempt, Record
from coda.program.presentation import shorten

Outputs = Mapping[str, Any]
"""A call's outputs by field."""

Told = Callable[[str | None], str]
"""What the grader says about an answer: what was expected, what came, which test failed."""

ALIKE = 0.34
"""Paths that differ in fewer of their words than this are called the same idea."""

_LONGEST = 1200


def feedback(record: Record, predictor: str, outputs: Outputs, told: Told) -> str:
    """Say what a predictor's call did for a problem.

    Args:
        record: The problem's story.
        predictor: Its name, such as ``executor.code``.
        outputs: What this call of it returned.
        told: The grader's words on an answer.
    """
    stage = predictor.partition(".")[0]
    tell = _STAGES.get(stage)
    parts = [tell(record, outputs, told)] if tell is not None else []
    return "\n".join([*parts, _result(record, told)])


def _planner(record: Record, outputs: Outputs, told: Told) -> str:
    if record.plan.source == "default":
        return (
            "The plan could not be used: no path in it could be read, or none in a mode that can be followed here. "
            'Write one path a line, as "reason: approach" or "code: approach".'
        )
    followed = [attempt for attempt in record.attempts if attempt.origin == "path"]
    lines = [_path(number, attempt, told) for number, attempt in enumerate(followed, start=1)]
    if not any(attempt.correct for attempt in followed):
        lines.append("No path led to the right answer: paths of another kind are needed.")
    unused = len(record.plan.paths) - len(followed)
    if unused > 0:
        lines.append(f"{unused} further paths were not needed, since the first ones agreed.")
    numbered = enumerate(record.plan.paths, start=1)
    for (i, a), (j, b) in combinations(numbered, 2):
        if diversity((a, b)) < ALIKE and (a.approach or b.approach):
            lines.append(f"Paths {i} and {j} are the same idea.")
    return "\n".join(lines)


def _path(number: int, attempt: GradedAttempt, told: Told) -> str:
    path = attempt.path
    name = f"Path {number}" if path is None else f"Path {number} ({path.mode}{_approach(path.approach)})"
    return f"{name} led to the right answer." if attempt.correct else f"{name} failed: {_fault(attempt, told)}"


def _executor(record: Record, outputs: Outputs, told: Told) -> str:
    attempt = attempt_of(record, outputs)
    if attempt is None:
        return "This reply led to no attempt: it was cut off, empty, or nothing in it could be read."
    parent = next((each for each in record.attempts if attempt in each.earlier), None)
    if attempt.correct:
        text = f"This attempt is right. {told(attempt.answer)}"
        return text if parent is None or parent.correct else f"{text} The correction that followed made it wrong."
    text = f"This attempt is wrong. {_fault(attempt, told)}"
    if parent is not None:
        text += " The correction that followed was right." if parent.correct else ""
    elif attempt.earlier and any(each.correct for each in attempt.earlier):
        text += " The attempt that it corrected was right."
    return text


def _reflector(record: Record, outputs: Outputs, told: Told) -> str:
    shown = [attempt for attempt in record.attempts if attempt.origin == "path"]
    right = [number for number, attempt in enumerate(shown, start=1) if attempt.correct]
    own = next((each for each in reversed(record.attempts) if each.origin == "reflection"), None)
    if own is None:
        return "The reflection led to no attempt."
    where = f"The right answer was in attempt {_numbers(right)}" if right else "None of the attempts was right"
    if own.correct:
        return f"{where} and was kept." if right else f"{where}, and the consolidated answer is right."
    return f"{where} and was dropped. {told(own.answer)}" if right else f"{where}. {told(own.answer)}"


def _verifier(record: Record, outputs: Outputs, told: Told) -> str:
    chosen = record.verdict.chosen
    votes = ", ".join(f"{_name(record.attempts[each[0]])} had {len(each)}" for each in record.classes)
    right = next((attempt for attempt in record.attempts if attempt.correct), None)
    if right is None:
        return "No attempt was right: there was nothing to choose."
    if chosen is not None and record.attempts[chosen].correct:
        return f"Chose {_name(record.attempts[chosen])}, which was right. Votes: {votes}."
    taken = "nothing" if chosen is None else _name(record.attempts[chosen])
    return f"Chose {taken}; {_name(right)} was right. Votes: {votes}. The verdict's reason: {record.verdict.reason}"


_STAGES = {"planner": _planner, "executor": _executor, "reflector": _reflector, "verifier": _verifier}


def attempt_of(record: Record, outputs: Outputs) -> GradedAttempt | None:
    """The attempt that a call's outputs became; ``None`` where they became none.

    Programs are recognised by their text, other replies by their reasoning or their answer, parts of a problem by
    their question or answer.
    """
    texts = {str(value).strip() for value in outputs.values() if isinstance(value, str) and value.strip()}
    attempts = every_graded(record)
    by_text = [each for each in attempts if {(each.code or "").strip(), each.reasoning.strip()} & texts - {""}]
    by_answer = [each for each in attempts if each.code is None and each.answer is not None and each.answer in texts]
    told = " ".join(map(str, outputs.values()))
    by_part = [each for each in attempts if any(part.question in told or part.answer in texts for part in each.parts)]
    return next(iter([*by_text, *by_answer, *by_part]), None)


def _fault(attempt: GradedAttempt, told: Told) -> str:
    """Why an attempt is not right: what stopped it, the error of its program, expected against got."""
    reasons = []
    if attempt.finish == "truncated":
        reasons.append("The reply was cut off before its end.")
    elif attempt.finish != "ok":
        reasons.append(f"The reply is {attempt.finish}{f': {attempt.error}' if attempt.error else ''}.")
    if attempt.execution is not None and attempt.execution.feedback:
        reasons.append(f"When run: {attempt.execution.feedback.strip()}")
    reasons.append(told(attempt.answer))
    return shorten(" ".join(reason for reason in reasons if reason), _LONGEST)


def _result(record: Record, told: Told) -> str:
    if record.error is not None:
        return f"The problem ended in an error ({record.error.kind}): {record.error.message}"
    verdict = "right" if record.correct else "wrong"
    return f"The pipeline's final answer is {verdict}. {shorten(told(record.answer), _LONGEST)}"


def _name(attempt: GradedAttempt) -> str:
    return "the program" if attempt.code is not None and attempt.answer == attempt.code else str(attempt.answer)


def _numbers(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers))


def _approach(approach: str) -> str:
    return f": {shorten(approach, 120)}" if approach else ""
