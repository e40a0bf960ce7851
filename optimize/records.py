"""What a run keeps of one problem and sample: the whole story, graded after the fact.

One record is one line of ``results.jsonl``; docs/records.md describes the fields. Records are the only thing that
reports, comparisons and training sets are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from coda.errors import RunError
from coda.program.types import Attempt, Frozen, Plan, Problem, Usage, Verdict

Key = tuple[str, int]
"""What identifies a record within a run: the problem's id and the sample's number."""

NO_PLAN = Plan(paths=())
NO_VERDICT = Verdict(answer=None, confidence=0.0, reason="the problem ended in an error", strategy="none")


class Fault(Frozen):
    """Why a problem has no answer that could be graded."""

    kind: str
    """``budget``, ``grading``, ``unexpected``, or how the Engine failed (`coda.errors.FaultKind`)."""
    message: str


class GradedAttempt(Attempt):
    """An attempt with its grade. The pipeline never saw the grade; it was given when the problem had ended."""

    score: float = 0.0
    correct: bool = False
    earlier: tuple[GradedAttempt, ...] = ()


class Record(Frozen):
    """The story of one problem and sample."""

    id: str
    sample: int = 0
    problem: Problem
    answer: str | None
    """The final answer; ``None`` where there is none."""
    expected: str
    """The reference answer."""
    score: float = 0.0
    """The grader's score, from 0 to 1; 0 for an error."""
    correct: bool = False
    """Whether the score is full."""
    error: Fault | None = None
    attempts: tuple[GradedAttempt, ...] = ()
    """All attempts, each with those that it refined (``earlier``)."""
    classes: tuple[tuple[int, ...], ...] = ()
    """Indices of attempts with the same answer, by equivalence; attempts without an answer are in none."""
    plan: Plan = NO_PLAN
    verdict: Verdict = NO_VERDICT
    early_exit: bool = False
    restatements: tuple[str, ...] = ()
    """The problem in other words, one for each round after the first."""
    stopped: str | None = None
    """Why the pipeline ended before it was done, where it did; it may have had an answer by then."""
    stages: dict[str, Usage] = Field(default_factory=dict)
    """What each stage's requests cost."""
    usage: Usage = Usage()
    seconds: float = 0.0

    @property
    def key(self) -> Key:
        """The problem's id and the sample's number."""
        return self.id, self.sample


def parse_line(line: bytes, file: Path, number: int) -> Record:
    """Read one line of ``results.jsonl``.

    Raises:
        RunError: It is damaged; the message names the file, the line and the field.
    """
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise RunError(
            f"{file}, line {number}: {where}: {first['msg']}. Delete that line to have its problem asked again."
        ) from error


def read_results(run_dir: Path) -> Iterator[Record]:
    """Yield a run's records, one for each key (the latest), by id and sample; one in memory at a time.

    Runs that did the same work therefore read the same, whichever problem ended first. A last line that was cut off by
    a crash is passed over.

    Raises:
        RunError: There are no results, or a line is damaged.
    """
    file = run_dir / "results.jsonl"
    places: dict[Key, tuple[int, int]] = {}
    try:
        stream = file.open("rb")
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}. Give a run directory that `coda eval --run-dir` wrote.") from error
    with stream:
        offset = 0
        for number, line in enumerate(stream, start=1):
            if line.endswith(b"\n"):
                places[parse_line(line, file, number).key] = (offset, number)
            offset += len(line)
        for _, (place, number) in sorted(places.items()):
            stream.seek(place)
            yield parse_line(stream.readline(), file, number)
