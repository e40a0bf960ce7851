"""How DSPy's optimizers are run: quietly, and without asking for anything twice."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import dspy.evaluate.evaluate
import dspy.predict.parallel
from dspy.utils.parallelizer import ParallelExecutor


class PatientExecutor(ParallelExecutor):
    """DSPy's executor, which waits for slow problems; DSPy's own asks for them a second time after two minutes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "timeout": 0})


@contextlib.contextmanager
def patiently() -> Iterator[None]:
    """Within the block, DSPy's evaluations and parallel runs never submit a task twice."""
    modules = (dspy.evaluate.evaluate, dspy.predict.parallel)
    before = [module.ParallelExecutor for module in modules]
    for module in modules:
        module.ParallelExecutor = PatientExecutor
    try:
        yield
    finally:
        for module, own in zip(modules, before, strict=True):
            module.ParallelExecutor = own


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Within the block, DSPy's and GEPA's progress and logs are not shown: the tracker has what they would say."""
    loggers = [logging.getLogger(name) for name in ("dspy", "optuna", "gepa")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
