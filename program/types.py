"""The data that flows through the pipeline: problem, plan, attempts, solution.

All of it is frozen and turns into JSON with ``model_dump(mode="json")``; run records hold exactly that.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Task = Literal["math", "choice", "code", "text"]
"""What kind of answer a problem wants; it decides extraction, equivalence, and the grader."""

Mode = Literal["reason", "code"]
"""How a path is followed: in words alone, or by writing a program and running it."""

Finish = Literal["ok", "truncated", "unparsable", "failed", "budget", "cancelled"]
"""How an attempt ended: ``failed`` means that the Engine or a tool did, ``budget`` that a limit stopped it."""

Outcome = Literal["ok", "error", "wrong", "timeout", "memory", "output", "killed", "no-sandbox"]
"""How a run of a program ended; ``wrong`` means that it ran, and a test failed."""


Isolation = Literal["full", "reduced", "off", "unsafe"]
"""How programs are confined here: fully, without some layers, not run at all, or run without any confinement."""


class Frozen(BaseModel):
    """Base of the pipeline's data: immutable, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Problem(Frozen):
    """What the pipeline is asked. It has no place for a reference answer, so nothing in it can leak one."""

    text: str = Field(min_length=1)
    task: Task = "math"
    choices: tuple[str, ...] = ()
    """The options of a multiple-choice problem, in order: A, B, C, …"""
    tests: tuple[str, ...] = ()
    """Visible tests of a code problem: Python statements, usually ``assert``."""
    entry_point: str | None = None
    """The function that a code problem wants, where the problem names one."""

    @property
    def key(self) -> str:
        """Twelve hex digits of the content's hash: the same problem has the same key in every run."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


class Path(Frozen):
    """One way to attack a problem."""

    mode: Mode
    approach: str = ""
    steps: tuple[str, ...] = ()
    confidence: float = Field(default=0.5, ge=0.0, le=1.0)


class Plan(Frozen):
    """The paths to follow, likeliest first."""

    paths: tuple[Path, ...]
    difficulty: Literal["easy", "medium", "hard"] | None = None
    source: Literal["engine", "default"] = "default"
    """``default`` where planning is off, or the Engine's plan could not be used."""


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


class Attempt(Frozen):
    """One try at a problem: an answer with its evidence."""

    origin: Literal["path", "reflection"] = "path"
    path: Path | None = None
    answer: str | None = None
    """The answer as extracted, ``None`` where there is none. For a code problem, the program."""
    reasoning: str = ""
    code: str | None = None
    execution: Execution | None = None
    refinements: int = 0
    """Rounds of correction that led to this attempt."""
    earlier: tuple[Attempt, ...] = ()
    """The failed attempts that it refines, oldest first."""
    finish: Finish = "ok"
    error: str | None = None


class Verdict(Frozen):
    """The verifier's choice."""

    answer: str | None
    confidence: float = Field(ge=0.0, le=1.0)
    reason: str = ""
    strategy: str = "majority"
    chosen: int | None = None
    """Index of the chosen attempt; ``None`` where there was nothing to choose from."""


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
    """Whether the attempts agreed, so that neither reflection nor verification was paid for."""
    stopped: str | None = None
    """Why the pipeline ended before it was done (a budget, an Engine that is down); ``None`` when it was done."""
    fault: str | None = None
    """The kind of what stopped it: ``budget``, or how the Engine failed (`coda.errors.FaultKind`)."""
    usage: Usage = Usage()
    seconds: float = 0.0
