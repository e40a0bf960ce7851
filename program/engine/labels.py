"""Labels say what a request is for: the ledger writes them down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Labels:
    """What a request is for."""

    problem: str | None = None
    sample: int | None = None
    stage: str | None = None
    attempt: int | None = None


NONE = Labels()

_labels: ContextVar[Labels] = ContextVar("coda_labels", default=NONE)


@contextmanager
def labelled(**labels: Any) -> Iterator[None]:
    """Label all requests within the block; labels of outer blocks stay unless given anew."""
    token = _labels.set(replace(_labels.get(), **labels))
    try:
        yield
    finally:
        _labels.reset(token)


def current_labels() -> Labels:
    """The labels in force here."""
    return _labels.get()
