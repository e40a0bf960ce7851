"""The sandbox: runs programs that a model wrote, and tests them, so that they can neither harm nor cheat.

    sandbox = shared_sandbox()
    execution = await sandbox.run("print(6 * 7)")

Every program gets namespaces of its own (no network, no other processes, an empty file system but for an interpreter
and a few libraries), limits, and a system-call filter; see docs/sandbox.md for what is covered and what is not. Where
no sandbox can be had nothing runs: the outcome is ``no-sandbox``.
"""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from coda.program.concurrency import on_background_loop, run_sync
from coda.program.tools import compiler, inout, isolation, python, results
from coda.program.tools.isolation import Feature, Ground
from coda.program.tools.job import Job, RunLimits
from coda.program.tools.pool import Kind, Pool, flavour_of
from coda.program.types import Execution, IOCase, Isolation

__all__ = ["Feature", "IOCase", "RunLimits", "Sandbox", "shared_sandbox"]

_DEFAULT = RunLimits()


class Sandbox:
    """Runs programs; from any thread and any event loop.

    Args:
        unsafe: Run programs even where there is no sandbox. They can then do all that the user can.
        workers: Programs at once; by default the number of cores. Others wait.
    """

    def __init__(self, *, unsafe: bool = False, workers: int | None = None) -> None:
        self._unsafe = unsafe
        self._workers = workers
        self._pool: Pool | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Copies of a program share their sandbox: it is the process's, not theirs."""
        return self

    @functools.cached_property
    def ground(self) -> Ground:
        """What the programs are confined by."""
        found = isolation.survey()
        return isolation.without_isolation() if found.level == "off" and self._unsafe else found

    @property
    def level(self) -> Isolation:
        """``full``, ``reduced`` (a layer is missing), ``off`` (nothing runs) or ``unsafe`` (nothing is confined)."""
        return self.ground.level

    @property
    def why(self) -> str:
        """What is missing, and how to get it."""
        return self.ground.why

    @property
    def available(self) -> bool:
        """Whether programs can be run."""
        return self.level != "off"

    async def run(
        self, program: str, *, language: str = "python", stdin: str = "", limits: RunLimits = _DEFAULT
    ) -> Execution:
        """Run a program for what it prints.

        Args:
            program: Its source.
            language: ``python``, ``c`` or ``cpp``.
            stdin: What it reads.
            limits: What it may use.

        Raises:
            SandboxError: There is no compiler for it, or the sandbox has failed.
            UsageError: There is no such language.
        """
        compiler.known(language)
        if not self.available:
            return self._nothing_ran()
        return await on_background_loop(self._run(program, language, stdin, limits))

    async def run_tests(
        self,
        program: str,
        tests: Sequence[str],
        *,
        entry_point: str | None = None,
        stop_early: bool = False,
        limits: RunLimits = _DEFAULT,
    ) -> Execution:
        """Test a Python program's functions.

        Args:
            program: Its source.
            tests: Python statements, usually ``assert``; or code that defines ``check(candidate)``. One that only
                defines or imports does not count; names that it defines are not taken from the program.
            entry_point: The function that such code is about.
            stop_early: Stop at the first failure.
            limits: What the program may use, for all tests together.

        Raises:
            SandboxError: The sandbox has failed.
        """
        if not self.available:
            return self._nothing_ran()
        wanted = python.Tests(tests, entry_point, stop_early)
        return await on_background_loop(self._run_tests(program, wanted, limits))

    async def run_io(
        self,
        program: str,
        cases: Sequence[IOCase],
        *,
        language: str = "python",
        float_tolerance: float | None = None,
        limits: RunLimits = _DEFAULT,
    ) -> Execution:
        """Test a program by what it prints for what it reads, up to the first failure.

        Args:
            program: Its source.
            cases: What it reads, and what it must print.
            language: ``python``, ``c`` or ``cpp``.
            float_tolerance: How far numbers may be off, absolutely or relatively; by default not at all.
            limits: What it may use, for each case.

        Raises:
            SandboxError: There is no compiler for it, or the sandbox has failed.
            UsageError: There is no such language, or no case.
        """
        compiler.known(language)
        if not self.available:
            return self._nothing_ran()
        return await on_background_loop(self._run_io(program, cases, language, float_tolerance, limits))

    def run_sync(self, program: str, *, stdin: str = "", limits: RunLimits = _DEFAULT) -> Execution:
        """`run` for Python programs, for callers that are not async."""
        return run_sync(self.run(program, stdin=stdin, limits=limits))

    def close(self) -> None:
        """End all that runs; the sandbox cannot be used afterwards."""
        atexit.unregister(self.close)
        if self._pool is not None:
            run_sync(self._close(self._pool))

    async def _close(self, pool: Pool) -> None:
        pool.close()

    def _open(self) -> Pool:
        """The pool, made on the background loop at first use."""
        if self._pool is None:
            self._pool = Pool(self.ground, self._workers)
            atexit.register(self.close)
        return self._pool

    def _nothing_ran(self) -> Execution:
        return Execution(outcome="no-sandbox", feedback=f"Programs cannot be run here. {self.why}", isolation="off")

    async def _run(self, program: str, language: str, stdin: str, limits: RunLimits) -> Execution:
        if language == compiler.PYTHON:
            return await self._run_python(program, stdin, limits)
        built = await compiler.build(self._open(), language, program)
        if built.binary is None:
            return self._does_not_compile(built.messages)
        try:
            return await self._run_binary(built.binary, stdin, limits)
        finally:
            os.close(built.binary)

    async def _run_python(self, program: str, stdin: str, limits: RunLimits) -> Execution:
        payload = {"role": "script", "program": program}
        ended = await self._open().use(
            Kind(flavour_of(program)), lambda template: Job(template, payload, limits, stdin=_bytes(stdin)).run()
        )
        return results.execution(ended, limits, self.level)

    async def _run_binary(self, binary: int, stdin: str, limits: RunLimits) -> Execution:
        payload = {"role": "native"}
        ended = await self._open().use(
            Kind(), lambda template: Job(template, payload, limits, stdin=_bytes(stdin), extra=[binary]).run()
        )
        return results.execution(ended, limits, self.level)

    async def _run_tests(self, program: str, tests: python.Tests, limits: RunLimits) -> Execution:
        return await self._open().use(
            Kind(flavour_of(program, *tests.tests)),
            lambda template: python.examine(template, program, tests, limits, self.level),
        )

    async def _run_io(
        self, program: str, cases: Sequence[IOCase], language: str, tolerance: float | None, limits: RunLimits
    ) -> Execution:
        def limits_for(case: IOCase) -> RunLimits:
            return replace(limits, output_bytes=max(limits.output_bytes, 2 * len(_bytes(case.expected))))

        if language == compiler.PYTHON:
            return await inout.examine(
                lambda case: self._run_python(program, case.stdin, limits_for(case)), cases, tolerance
            )
        built = await compiler.build(self._open(), language, program)
        if built.binary is None:
            return self._does_not_compile(built.messages).model_copy(
                update={"tests_passed": 0, "tests_total": len(cases)}
            )
        binary = built.binary
        try:
            return await inout.examine(
                lambda case: self._run_binary(binary, case.stdin, limits_for(case)), cases, tolerance
            )
        finally:
            os.close(binary)

    def _does_not_compile(self, messages: str) -> Execution:
        return Execution(outcome="error", stderr=messages, feedback=messages, isolation=self.level)


def _bytes(content: str) -> bytes:
    return content.encode("utf-8", "replace")


_shared: dict[bool, Sandbox] = {}


def shared_sandbox(unsafe: bool = False) -> Sandbox:
    """The process's sandbox.

    Args:
        unsafe: Run programs even where there is no sandbox.
    """
    return _shared.setdefault(unsafe, Sandbox(unsafe=unsafe))
