"""The data that flows through the pipeline: problem, plan, attempts, solution.

All of it is frozen and turns into JSON with ``model_dump(mode="json")``; run records hold exactly that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Task = Literal["math", "choice", "code", "text"]
"""What kind of answer a problem wants; it decides extraction, equivalence, and the grader."""

Mode = Literal["reason", "code", "decompose"]
"""How a path is followed: in words alone, by writing a program and running it, or part by part."""

Finish = Literal["ok", "truncated", "unparsable", "failed", "budget", "cancelled"]
"""How an attempt ended: ``failed`` means that the Engine or a tool did, ``budget`` that a limit stopped it."""

Outcome = Literal["ok", "error", "wrong", "timeout", "memory", "output", "killed", "no-sandbox"]
"""How a run of a program ended; ``wrong`` means that it ran, and a test failed or its output is no answer."""

Isolation = Literal["full", "reduced", "off", "unsafe"]
"""How programs are confined here: fully, without some layers, not run at all, or run without any confinement."""


class Frozen(BaseModel):
    """Base of the pipeline's data: immutable, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class IOCase:
    """One test of a program by what it reads and prints.

    Attributes:
        stdin: What the program reads.
        expected: What it must print; white space at line ends and at the end does not count.
    """

    stdin: str
    expected: str


class Problem(Frozen):
    """What the pipeline is asked. It has no place for a reference answer, so nothing in it can leak one."""

    text: str = Field(min_length=1)
    task: Task = "math"
    choices: tuple[str, ...] = ()
    """The options of a multiple-choice problem, in order: A, B, C, …"""
    tests: tuple[str, ...] = ()
    """Visible tests of a code problem: Python statements, usually ``assert``."""
    cases: tuple[IOCase, ...] = ()
    """Visible tests of a code problem whose program reads and prints."""
    entry_point: str | None = None
    """The function that a code problem wants, where the problem names one."""

    @property
    def key(self) -> str:
        """Twelve hex digits of the content's hash: the same problem has the same key in every run."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


class Step(Frozen):
    """One step of a path; of a path with mode ``decompose``, one part of the problem."""

    action: str
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    """How sure the Engine says it is of this step: a hint for ordering paths, never evidence."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"action": value} if isinstance(value, str) else value


class Path(Frozen):
    """One way to attack a problem."""

    mode: Mode
    approach: str = ""
    steps: tuple[Step, ...] = ()
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)
    """How sure the Engine says it is; where it does not say, that of the path's least certain step."""


class Plan(Frozen):
    """The paths to follow, likeliest first."""

    paths: tuple[Path, ...]
    difficulty: Literal["easy", "medium", "hard"] | None = None
    source: Literal["engine", "default"] = "default"
    """``default`` where planning is off or was not needed, or the Engine's plan could not be used."""

    def first(self, count: int) -> Plan:
        """The plan with its first paths only."""
        return self.model_copy(update={"paths": self.paths[:count]})

    def followed_by(self, other: Plan) -> Plan:
        """Both plans in one: the paths of this one, then those of the other."""
        return other.model_copy(update={"paths": (*self.paths, *other.paths)})


class Execution(Frozen):
    """What happened when a program ran in the sandbox."""

    outcome: Outcome
    stdout: str = ""
    stderr: str = ""
    exit_status: int | None = None
    feedback: str = ""
    """What to tell the Engine about it: the error with the failing line, or the failed test. Empty when all is well."""
    tests_passed: int | None = None
    tests_total: int | None = None
    seconds: float = 0.0
    peak_memory_mb: float | None = None
    """The most that one of its processes used, beyond the interpreter with its libraries; ``None`` if unknown."""
    truncated: bool = False
    """Whether it printed more than it may; the rest is cut off."""
    isolation: Isolation = "off"
    """What stood between the program and the machine; ``off`` where nothing ran."""


class Part(Frozen):
    """A part of a problem, as a path with mode ``decompose`` solved it."""

    question: str
    answer: str


class Attempt(Frozen):
    """One try at a problem: an answer with its evidence."""

    origin: Literal["path", "reflection"] = "path"
    path: Path | None = None
    round: int = Field(default=1, ge=1)
    """The round in which it was made."""
    answer: str | None = None
    """The answer as extracted, ``None`` where there is none. For a code problem, the program."""
    reasoning: str = ""
    code: str | None = None
    execution: Execution | None = None
    parts: tuple[Part, ...] = ()
    """The parts by which it was solved, where it was."""
    refinements: int = 0
    """Rounds of correction that led to this attempt."""
    earlier: tuple[Attempt, ...] = ()
    """The failed attempts that it refines, oldest first."""
    finish: Finish = "ok"
    error: str | None = None


class Ranked(Frozen):
    """One distinct answer in the verifier's order."""

    answer: str
    votes: int
    """Attempts that gave it."""
    score: float
    """What the verifier ordered by, from 0 to 1."""
    attempts: tuple[int, ...]
    """Their indices."""


class Verdict(Frozen):
    """The verifier's choice."""

    answer: str | None
    confidence: float = Field(ge=0.0, le=1.0)
    """How sure the verifier is, from 0 to 1; below ``Settings.convinced`` another round is worth its cost."""
    reason: str = ""
    strategy: str = "majority"
    chosen: int | None = None
    """Index of the chosen attempt; ``None`` where there was nothing to choose from."""
    ranking: tuple[Ranked, ...] = ()
    """All distinct answers, the chosen one first."""


class Usage(Frozen):
    """What requests cost. Tokens are the server's count; where it reports none they are 0."""

    calls: int = 0
    """Requests that left the process, failed and retried ones included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of ``completion_tokens``."""
    cached: int = 0
    """Answers that came from the response cache or from an identical request in flight: no request."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Field by field."""
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields})


class Solution(Frozen):
    """The pipeline's answer to a problem, with its whole story."""

    answer: str | None
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    verdict: Verdict
    plan: Plan
    attempts: tuple[Attempt, ...] = ()
    early_exit: bool = False
    """Whether the attempts agreed, so that nothing more was paid for."""
    rounds: int = Field(default=1, ge=1)
    restatements: tuple[str, ...] = ()
    """The problem in other words, one for each round after the first."""
    stopped: str | None = None
    """Why the pipeline ended before it was done (a budget, an Engine that is down); ``None`` when it was done."""
    fault: str | None = None
    """The kind of what stopped it: ``budget``, or how the Engine failed (`coda.errors.FaultKind`)."""
    usage: Usage = Usage()
    seconds: float = 0.0
