"""Problems as stories for tracers: what each stage made, and when. About ten spans for a problem."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coda.program.engine.labels import current_labels
from coda.program.events import Event
from coda.program.types import Problem, Solution


@dataclass(frozen=True)
class Span:
    """What a stage made.

    Attributes:
        name: The stage, or ``attempt``.
        start: Nanoseconds since the epoch; no earlier than the end of what it builds on.
        end: Nanoseconds since the epoch.
        output: What it made.
    """

    name: str
    start: int
    end: int
    output: dict[str, Any]


@dataclass
class Story:
    """A problem from its beginning on."""

    problem: Problem
    sample: int
    start: int
    spans: list[Span] = field(default_factory=list)


class Storyteller:
    """A watcher of the program's events that tells each problem's story when it is solved.

    Args:
        share: The share of problems that are told, from 0 to 1; the same ones in every run.
        tell: Is given each story, its solution, and when that came, in nanoseconds.
    """

    def __init__(self, share: float, tell: Callable[[Story, Solution, int], object]) -> None:
        self._share = share
        self._tell = tell
        self._open: dict[tuple[str, int], Story] = {}

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        key = event.problem.key, current_labels().sample or 0
        now = time.time_ns()
        if event.kind == "problem":
            if _place(key) < self._share:
                self._open[key] = Story(event.problem, key[1], now)
            return
        story = self._open.get(key)
        if story is None or event.data is None:
            return
        if isinstance(event.data, Solution):
            del self._open[key]
            self._tell(story, event.data, now)
        else:
            story.spans.append(Span(event.kind, _start(story, event.kind), now, event.data.model_dump(mode="json")))


def _start(story: Story, kind: str) -> int:
    """When a stage began: attempts all at once, at the end of the plan; any other when the one before it had ended."""
    before = [span.end for span in story.spans if kind != "attempt" or span.name != "attempt"]
    return max(before, default=story.start)


def _place(key: tuple[str, int]) -> float:
    """A number from 0 to 1 that depends on the problem and sample alone."""
    digest = hashlib.sha256(f"{key[0]}:{key[1]}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
