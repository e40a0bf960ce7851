"""What one record says about the pipeline: which stage had the right answer, and where a wrong one was lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coda.optimize.records import GradedAttempt, Key, Record

Loss = Literal[
    "no-candidate",  # all attempts came to an answer, and none is right
    "reflection",  # the paths' majority was right; the reflector's answer was wrong and was taken
    "verifier",  # a right attempt was there, another was chosen
    "truncated",  # replies were cut off before an answer
    "unparsable",  # replies held nothing that could be read as an answer
    "tool",  # programs failed, or could not be run
    "budget",  # a limit ended the search
    "engine",  # the Engine failed
    "internal",  # grading failed, or CODA did
]
"""Where a wrong problem was lost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the report keeps of one record: small, so that it holds for any number of problems."""

    key: Key
    score: float
    single: bool
    oracle: bool
    majority: bool
    verified: bool
    final: bool
    loss: Loss | None
    early_exit: bool
    planned: bool
    covered: bool
    distinct_answers: int
    modes: tuple[tuple[str, bool, bool], ...]
    """Each path attempt: its mode, whether it has an answer, whether it is right."""
    programs: tuple[str, ...]
    rounds: tuple[tuple[int, bool, bool], ...]
    """Each correction: its round, right before, right after."""
    reflection: bool | None
    """Whether the reflector was right; ``None`` where it did not run."""
    contested: bool
    tokens: int


def finding(record: Record) -> Finding:
    """Reduce a record to what the report needs."""
    paths = [index for index, attempt in enumerate(record.attempts) if attempt.origin == "path"]
    reflections = [attempt for attempt in record.attempts if attempt.origin == "reflection"]
    oracle = any(attempt.correct for attempt in record.attempts)
    majority = _majority_right(record, paths)
    chains = [(*attempt.earlier, attempt) for attempt in record.attempts]
    return Finding(
        key=record.key,
        score=record.score,
        single=bool(paths) and record.attempts[paths[0]].correct,
        oracle=oracle,
        majority=majority,
        verified=record.verdict.chosen in _right(record),
        final=record.correct,
        loss=None if record.correct else _loss(record, majority=majority),
        early_exit=record.early_exit,
        planned=record.plan.source == "engine",
        covered=any(record.attempts[index].correct for index in paths),
        distinct_answers=len(record.classes),
        modes=tuple(_mode_of(record.attempts[index]) for index in paths),
        programs=tuple(each.execution.outcome for chain in chains for each in chain if each.execution is not None),
        rounds=tuple(
            (number, before.correct, after.correct)
            for chain in chains
            for number, (before, after) in enumerate(itertools.pairwise(chain), start=1)
        ),
        reflection=reflections[-1].correct if reflections else None,
        contested=oracle and any(a.answer is not None and not a.correct for a in record.attempts),
        tokens=record.usage.tokens,
    )


def _majority_right(record: Record, paths: Sequence[int]) -> bool:
    """Whether the paths' most frequent answer is right; among equally frequent ones the first that came counts."""
    votes = [[index for index in members if index in paths] for members in record.classes]
    best = max(votes, key=lambda members: (len(members), -min(members, default=0)), default=[])
    return any(record.attempts[index].correct for index in best)


def _right(record: Record) -> list[int]:
    return [index for index, attempt in enumerate(record.attempts) if attempt.correct]


def _loss(record: Record, *, majority: bool) -> Loss:
    if record.error is not None and record.error.kind in {"grading", "unexpected"}:
        return "internal"
    if _right(record):
        return "reflection" if majority and _reflection_was_taken(record) else "verifier"
    if any(_sound(attempt) for attempt in record.attempts):
        return "budget" if _hit_limit(record) else "no-candidate"
    causes = Counter(_cause(attempt) for attempt in record.attempts)
    if not causes:
        return "budget" if record.error is not None and record.error.kind == "budget" else "engine"
    return causes.most_common(1)[0][0]


def _reflection_was_taken(record: Record) -> bool:
    taken = next((members for members in record.classes if record.verdict.chosen in members), ())
    return any(record.attempts[index].origin == "reflection" for index in taken)


def _hit_limit(record: Record) -> bool:
    return any(attempt.finish == "budget" for attempt in record.attempts)


def _sound(attempt: GradedAttempt) -> bool:
    """Whether an attempt came to an answer in good order, right or wrong."""
    ran = attempt.execution is None or attempt.execution.outcome != "no-sandbox"
    return attempt.finish == "ok" and attempt.answer is not None and ran


def _cause(attempt: GradedAttempt) -> Loss:
    """Why an attempt has no sound answer."""
    match attempt.finish:
        case "truncated":
            return "truncated"
        case "unparsable":
            return "unparsable"
        case "budget" | "cancelled":
            return "budget"
        case "failed":
            return "engine"
    return "tool" if attempt.execution is not None else "unparsable"


def _mode_of(attempt: GradedAttempt) -> tuple[str, bool, bool]:
    return attempt.path.mode if attempt.path is not None else "reason", attempt.answer is not None, attempt.correct
