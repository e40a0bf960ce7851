"""Who watches an evaluation: progress bars, trackers, tests."""

from __future__ import annotations

from typing import Protocol

from coda.optimize.records import Record
from coda.optimize.summary import Summary


class Observer(Protocol):
    """Watches an evaluation: a progress bar, a tracker, a test. Its methods must not block for long."""

    def on_start(self, total: int, finished: int) -> None:
        """The run begins: it has ``total`` results when it is whole, ``finished`` of which are there already."""

    def on_result(self, record: Record) -> None:
        """A result has come, and is on the disk."""

    def on_end(self, summary: Summary) -> None:
        """The run ends, whole or not (``summary.stopped``)."""


class Observers:
    """Several observers as one."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def on_start(self, total: int, finished: int) -> None:
        """Tell all."""
        for each in self._observers:
            each.on_start(total, finished)

    def on_result(self, record: Record) -> None:
        """Tell all."""
        for each in self._observers:
            each.on_result(record)

    def on_end(self, summary: Summary) -> None:
        """Tell all."""
        for each in self._observers:
            each.on_end(summary)
