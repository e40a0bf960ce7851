"""The ledger: one line for every request that left the process, and for every answer that needed none."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import IO, Literal

from coda.program.types import Frozen, Usage

CallOutcome = Literal["ok", "truncated", "failed", "cached", "joined", "cancelled"]


class Call(Frozen):
    """One line.

    ``cached`` and ``joined`` lines are no requests; all others are, and the server has counted them too.
    """

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
    fault: str | None = None
    status: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server had in its own cache."""
    seconds: float = 0.0
    request: str = ""
    """Hash of the whole request."""

    def usage(self) -> Usage:
        """What the line adds to the totals."""
        asked = self.outcome not in ("cached", "joined")
        return Usage(
            calls=int(asked),
            cached=int(not asked),
            prompt_tokens=self.prompt_tokens if asked else 0,
            completion_tokens=self.completion_tokens if asked else 0,
            reasoning_tokens=self.reasoning_tokens if asked else 0,
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
        """Add a line."""
        with self._lock:
            self._total += call.usage()
            stage = call.stage or ""
            self._stages[stage] = self._stages.get(stage, Usage()) + call.usage()
            if self.path is not None:
                self._open(self.path).write(call.model_dump_json(exclude_none=True).encode() + b"\n")

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
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
