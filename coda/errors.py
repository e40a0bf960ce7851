"""Everything that CODA raises on purpose.

    CodaError                what a caller catches; ``exit_status`` is what the command line ends with
    ├── UsageError      2    an option, a setting or a combination of them cannot work
    ├── DataError       2    a benchmark, a data file or a row in it cannot be used
    ├── ArtifactError   2    a compiled program cannot be loaded
    ├── RunError        2    a run directory belongs to another configuration, or to another process
    ├── SandboxError    1    model-written code cannot be run safely here
    ├── EngineError     1    the Engine failed; ``kind`` says how
    ├── NoGainError     1    a compiled program is not proven better, and only a better one was to be kept
    ├── TrackingError   1    MLflow's store failed where nothing can be done without it
    └── BudgetExceeded  3    the next request would break a limit that the user set

A message says what happened, where, and what to do next, in that order. Wrong answers, failing programs and
truncated replies are results (see ``coda.program.types.Attempt``), not errors.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "ArtifactError",
    "BudgetExceeded",
    "CodaError",
    "DataError",
    "EngineError",
    "FaultKind",
    "NoGainError",
    "RunError",
    "SandboxError",
    "TrackingError",
    "UsageError",
]

FaultKind = Literal[
    "auth",  # the key is missing, wrong, or may not do this
    "billing",  # no credit, quota used up
    "rate-limit",  # too many requests: wait and try again
    "timeout",  # no reply in time
    "connection",  # refused, reset, or not speaking the protocol
    "server",  # the server failed (5xx)
    "bad-request",  # the server will not take this request
    "context",  # the request does not fit into the context window
    "unknown-model",  # the server has no such model
    "content-filter",  # the reply was withheld
    "bad-reply",  # a reply arrived and cannot be used
    "configuration",  # the Engine is set up wrongly
    "unexpected",  # a fault that nobody foresaw
]


class CodaError(Exception):
    """Base of everything that CODA raises on purpose."""

    exit_status = 1


class NoGainError(CodaError):
    """Compiling has not made the program provably better, and only then was it to be kept."""


class UsageError(CodaError):
    """An option or a setting cannot work; the message says which and what would."""

    exit_status = 2


class DataError(CodaError):
    """A benchmark, a data file, or one row of it cannot be used."""

    exit_status = 2


class ArtifactError(CodaError):
    """A compiled program's folder cannot be loaded."""

    exit_status = 2


class RunError(CodaError):
    """A run directory belongs to another configuration, or another process is using it."""

    exit_status = 2


class SandboxError(CodaError):
    """Model-written code cannot be run safely on this machine."""


class TrackingError(CodaError):
    """MLflow's store failed, and what was asked for cannot be done without it."""


class EngineError(CodaError):
    """The Engine failed.

    Args:
        message: What happened, where, and what to do next.
        kind: The fault, see `FaultKind`.
        status: The HTTP status, where there was one.
        retry_after: Seconds that the server asks us to wait, where it does.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FaultKind = "unexpected",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: FaultKind = kind
        self.status = status
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed when it is sent again."""
        return self.kind in {"rate-limit", "timeout", "connection", "server", "bad-reply"}


class BudgetExceeded(CodaError):
    """The next request would break a limit on calls, tokens, seconds or money."""

    exit_status = 3
