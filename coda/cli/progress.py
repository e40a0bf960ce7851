"""Progress on stderr: a bar where a person watches, a line now and then where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coda.cli.console import err, note
from coda.optimize.records import Record
from coda.optimize.summary import Summary


class EvaluationBar:
    """Shows an evaluation: how far it is, and the accuracy so far.

    Args:
        name: What is measured.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._right = self._done = 0
        self._progress = Progress(
            TextColumn("[bold]{task.description:<16}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[accuracy]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
        )
        self._task = self._progress.add_task(name, total=None, accuracy="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_start(self, total: int, finished: int) -> None:
        """The evaluation begins, or goes on."""
        if finished:
            note(f"{self.name}: {finished} of {total} are there already.")
        self._progress.update(self._task, total=total, completed=finished)

    def on_result(self, record: Record) -> None:
        """A result has come."""
        self._done += 1
        self._right += record.correct
        accuracy = f"{self._right / self._done:.0%} right"
        self._progress.update(self._task, advance=1, accuracy=accuracy)

    def on_end(self, summary: Summary) -> None:
        """The evaluation has ended."""
        low, high = summary.ci95
        note(
            f"{self.name}: {summary.accuracy:.1%} of {summary.n} [{low:.1%}, {high:.1%}], "
            f"{summary.calls} calls, {summary.tokens} tokens, {summary.seconds:.0f} s"
        )


@contextmanager
def counting(name: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar for work that is counted; what it gives is to be called after each piece."""
    columns = (TextColumn("[bold]{task.description:<16}"), BarColumn(bar_width=30), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=err, disable=not err.is_terminal, transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda: progress.advance(task)
