"""What the pipeline tells those who watch it: a live display, a tracker, a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from coda.program.types import Attempt, Plan, Problem, Solution, Verdict

Kind = Literal["problem", "plan", "attempt", "reflection", "verdict", "solution"]


@dataclass(frozen=True)
class Event:
    """Something that happened to a problem.

    Attributes:
        kind: The stage that ended; ``problem`` where work on it begins.
        problem: The problem that it happened to.
        data: What the stage made.
    """

    kind: Kind
    problem: Problem
    data: Plan | Attempt | Verdict | Solution | None = None


Watcher = Callable[[Event], None]

_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("coda_watchers", default=())


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` of every event within the block, from whatever task it comes. It must not block."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


def emit(kind: Kind, problem: Problem, data: Plan | Attempt | Verdict | Solution | None = None) -> None:
    """Tell all watchers."""
    for watcher in _watchers.get():
        watcher(Event(kind, problem, data))
