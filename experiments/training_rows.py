"""What a recorded problem teaches a verifier, a reflector, and a model that corrects itself: rows for training."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

from coda.optimize.records import GradedAttempt, Record

Kind = Literal["preference", "judge", "refinement", "reflection"]
"""A training set: right before wrong (DPO), right or wrong (SFT), failed attempt to fix, attempts to resolution."""

Row = dict[str, Any]

MOST_PAIRS = 8
"""Preference pairs that one problem and sample gives."""


def rows_of(record: Record) -> Iterator[tuple[Kind, Row, dict[str, int]]]:
    """The rows of one record, each with its kind and the numbers of the attempts that it is made of."""
    asked = {"role": "user", "content": task_of(record)}
    told = [(number, each) for number, each in enumerate(record.attempts) if each.finish == "ok" and _text(each)]
    right = [pair for pair in told if pair[1].correct]
    wrong = [pair for pair in told if not pair[1].correct and pair[1].answer is not None]
    for (good, chosen), (bad, rejected) in itertools.islice(itertools.product(right, wrong), MOST_PAIRS):
        row = {"prompt": [asked], "chosen": [_reply(chosen)], "rejected": [_reply(rejected)]}
        yield "preference", row, {"attempt": good, "against": bad}
    for number, each in right + wrong:
        question = f"{asked['content']}\n\nA proposed solution:\n\n{_text(each)}\n\nIs its answer right or wrong?"
        yield "judge", _chat(question, "right" if each.correct else "wrong"), {"attempt": number}
    for number, each in right:
        if each.earlier and not each.earlier[-1].correct and _text(each.earlier[-1]):
            failed = each.earlier[-1]
            again = {"role": "user", "content": f"{_feedback(failed)}\n\nCorrect the solution."}
            yield "refinement", {"messages": [asked, _reply(failed), again, _reply(each)]}, {"attempt": number}
        if each.origin == "reflection" and any(other.origin == "path" for _, other in wrong):
            shown = [f"Attempt {at + 1}:\n{_text(other)}" for at, (_, other) in enumerate(told) if other is not each]
            question = "\n\n".join([task_of(record), *shown, "Name where the attempts disagree, then solve it."])
            yield "reflection", _chat(question, _text(each)), {"attempt": number}


def task_of(record: Record) -> str:
    """The problem as a user would put it: text, choices, visible tests."""
    problem = record.problem
    choices = [f"{chr(65 + at)}. {choice}" for at, choice in enumerate(problem.choices)]
    return "\n".join([problem.text, *choices, *problem.tests])


def _chat(question: str, reply: str) -> Row:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]}


def _reply(attempt: GradedAttempt) -> dict[str, str]:
    return {"role": "assistant", "content": _text(attempt)}


def _text(attempt: GradedAttempt) -> str:
    """An attempt as a reply: its reasoning, its program, and its answer where that is not the program."""
    program = f"```python\n{attempt.code}\n```" if attempt.code else ""
    answer = f"Answer: {attempt.answer}" if attempt.answer is not None and attempt.answer != attempt.code else ""
    return "\n\n".join(part for part in (attempt.reasoning.strip(), program, answer) if part)


def _feedback(attempt: GradedAttempt) -> str:
    """What really happened to a failed attempt."""
    ran = attempt.execution
    said = (ran.feedback or ran.stderr or ran.stdout) if ran is not None else attempt.error
    return said or "The answer is wrong."
