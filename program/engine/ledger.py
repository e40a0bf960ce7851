"""The ledger: one line for every request that left the process, and for every answer that needed none."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO, Literal

from coda.errors import FaultKind, RunError
from coda.program.types import Frozen, Usage

CallOutcome = Literal["ok", "truncated", "failed", "cancelled", "cached", "joined", "unsent"]

NO_REQUEST = frozenset({"cached", "joined", "unsent"})
"""Lines that are no requests: an answer from the cache, or from an identical request in flight; no connection."""


class Call(Frozen):
    """One line. The server has counted it too, unless its outcome is one of `NO_REQUEST`."""

    time: float
    """Seconds since the epoch, when it ended."""
    model: str
    outcome: CallOutcome
    problem: str | None = None
    sample: int | None = None
    stage: str | None = None
    attempt: int | None = None
    retry: int = 0
    """How many requests for the same reply went before."""
    fault: FaultKind | None = None
    status: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server had in its own cache."""
    usd: float | None = None
    """What it cost; ``None`` where prices are not known."""
    max_tokens: int | None = None
    """What the reply was allowed."""
    effort: str | None = None
    seconds: float = 0.0
    request: str = ""
    """Hash of the whole request."""

    def usage(self) -> Usage:
        """What the line adds to the totals."""
        if self.outcome in NO_REQUEST:
            return Usage(cached=int(self.outcome != "unsent"))
        return Usage(
            calls=1,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            reasoning_tokens=self.reasoning_tokens,
        )


class Ledger:
    """Records calls, in memory as totals, and in a file line by line where one is given.

    Args:
        path: The file to append to. A last line that a crash cut in two is removed.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._total = Usage()
        self._stages: dict[str, Usage] = {}
        self._file: IO[bytes] | None = None

    def record(self, call: Call) -> None:
        """Add a line.

        Raises:
            RunError: The file cannot be written.
        """
        cost = call.usage()
        stage = call.stage or ""
        with self._lock:
            self._total += cost
            self._stages[stage] = self._stages.get(stage, Usage()) + cost
            if self.path is not None:
                self._write(self.path, call.model_dump_json(exclude_none=True).encode() + b"\n")

    def totals(self) -> Usage:
        """All lines of this process together."""
        with self._lock:
            return self._total

    def by_stage(self) -> dict[str, Usage]:
        """The totals of each stage."""
        with self._lock:
            return dict(self._stages)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, path: Path, line: bytes) -> None:
        try:
            self._open(path).write(line)
        except OSError as error:
            raise RunError(
                f"The ledger {path} cannot be written ({error.strerror}). Make room, or give another --run-dir."
            ) from error

    def _open(self, path: Path) -> IO[bytes]:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _drop_half_line(path)
            self._file = path.open("ab", buffering=0)
        return self._file


def _drop_half_line(path: Path) -> None:
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = whole = file.seek(0, os.SEEK_END)
        while whole > 0:
            start = max(0, whole - 65536)
            file.seek(start)
            newline = file.read(whole - start).rfind(b"\n")
            whole = start + newline + 1 if newline >= 0 else start
            if newline >= 0:
                break
        if whole < end:
            file.truncate(whole)
