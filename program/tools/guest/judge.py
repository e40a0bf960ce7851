"""The tests, in a job of their own: they call the program through proxies, and nobody else can write the verdict."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import sys
import types
from typing import Any

from coda.program.tools.guest import asserts, link
from coda.program.tools.guest.wire import Wire

CANDIDATE = "candidate"
"""What the function under test is called in tests that do not name it."""

_SHORTCUTS = {"np": "numpy", "sp": "sympy"}
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"numpy", "sympy", "scipy", "mpmath"}
_LONGEST_SOURCE = 400
_MOST_FAILURES = 10
_MOST_CALLS = 3


def run(job: dict[str, Any], extra: list[int]) -> None:
    """Run ``job["tests"]`` and write the verdict to the second extra descriptor. Never returns."""
    sys.path[:] = [entry for entry in sys.path if entry != "/sandbox"]
    judge = Judge(link.Link(Wire(extra[0])), job["entry_point"], stop_early=job["stop_early"])
    data = json.dumps(judge.verdict(job["tests"])).encode()
    while data:
        data = data[os.write(extra[1], data) :]
    os._exit(0)


class Judge:
    """Runs tests against a program.

    Args:
        connection: The connection to it.
        entry_point: The function that the tests are about, where they do not name it.
        stop_early: Stop at the first failure.
    """

    def __init__(self, connection: link.Link, entry_point: str | None, *, stop_early: bool) -> None:
        self._link = connection
        self._entry = entry_point
        self._stop_early = stop_early
        self._names: dict[str, Any] = {"__name__": "tests", asserts.FAILED: asserts.Failed}
        self._fixed: dict[str, Any] = {}
        self._failures: list[str] = []
        self._passed = 0
        self._total = 0

    def verdict(self, tests: list[str]) -> dict[str, Any]:
        """Run the tests.

        Returns:
            ``total`` and ``passed`` count assertions; ``failures`` are texts; ``load_error`` says why the program did
            not get as far as the tests; ``gone`` that it ended before they did.
        """
        scripts = [self._take_apart(test, number) for number, test in enumerate(tests, start=1)]
        self._total = sum(1 if isinstance(script, str) else _count(script) for script in scripts)
        load_error = None
        try:
            self._bind([script for script in scripts if not isinstance(script, str)], self._link.defines())
            self._run_all(scripts)
        except (link.Gone, link.BadReply, MissingEntry) as error:
            load_error = str(error)
        return {
            "total": self._total,
            "passed": self._passed,
            "failures": self._failures[:_MOST_FAILURES],
            "load_error": load_error,
            "gone": isinstance(self._link.broken, link.Gone),
        }

    def _take_apart(self, test: str, number: int) -> asserts.Script | str:
        try:
            return asserts.take_apart(test, f"test {number}", CANDIDATE if self._entry else None)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"Test {number} is not valid Python: {error}"

    def _bind(self, scripts: list[asserts.Script], defines: dict[str, list[str]]) -> None:
        """Give the tests the names that they use and do not define."""
        if self._entry is not None:
            if self._entry not in defines:
                own = [name for name, kind in defines.items() if kind[0] == "function" and not name.startswith("_")]
                raise MissingEntry(
                    f"The program must define `{self._entry}`; it defines: {', '.join(own) or 'nothing'}."
                )
            candidate = self._link.name(self._entry)
            self._fixed = {self._entry: candidate, CANDIDATE: candidate}
            self._names |= self._fixed
        used = frozenset[str]().union(*(script.used for script in scripts))
        defined = frozenset[str]().union(*(script.defined for script in scripts))
        called = frozenset[str]().union(*(script.called for script in scripts))
        attributed = frozenset[str]().union(*(script.attributed for script in scripts)) - called
        for name in sorted(used - defined - self._names.keys()):
            if hasattr(builtins, name):
                continue  # Never the program's: it could make `abs` or `all` say what it likes.
            kind, *details = defines.get(name, ["unknown"])
            library = _SHORTCUTS.get(name, name) if name in attributed else details[0] if kind == "module" else ""
            if library.split(".")[0] in _LIBRARIES and (module := _imported(library)) is not None:
                self._names[name] = module
            elif kind == "exception":
                self._names[name] = self._link.exception_class(details)
            elif kind != "unknown":
                self._names[name] = self._link.name(name)

    def _run_all(self, scripts: list[asserts.Script | str]) -> None:
        number = 0
        for script in scripts:
            if isinstance(script, str):
                number += 1
                self._failures.append(script)
            else:
                number = self._run(script, number)
                if not _count(script):  # It may define helpers, and hold a stub of the function itself.
                    self._names |= self._fixed
            if self._link.broken is not None or (self._failures and self._stop_early):
                return

    def _run(self, script: asserts.Script, number: int) -> int:
        """Run one test's steps and return the number of the last assertion."""
        last = number + _count(script)
        for unit in script.units:
            number += unit.counts
            self._link.calls.clear()
            self._link.traceback = ""
            error: BaseException | None = None
            try:
                exec(unit.code, self._names)  # noqa: S102 - the test
            except BaseException as raised:  # tests and programs may raise anything
                error = raised
            error = self._link.broken or error
            if error is None:
                self._passed += unit.counts
                continue
            self._failures.append(self._explain(unit, number, error))
            if not unit.counts or self._stop_early or self._link.broken is not None:
                break
        return last

    def _explain(self, unit: asserts.Unit, number: int, error: BaseException) -> str:
        """What to tell about a failure: the test, what was called and came back, what was expected."""
        source = error.source if isinstance(error, asserts.Failed) else unit.source.removeprefix("assert ")
        place = f"Test {number} of {self._total}" if unit.counts else "The preparation of a test"
        lines = [f"{place} failed: {source[:_LONGEST_SOURCE]}"]
        lines += [f"  {call} {came}" for call, came in self._link.calls[-_MOST_CALLS:]]
        if isinstance(error, asserts.Failed):
            lines += _sides(error)
        elif isinstance(error, link.Gone):
            lines.append("  the program ended")
        elif isinstance(error, link.BadReply):
            lines.append(f"  the program sent what no function returns: {error}")
        elif self._link.traceback:
            lines.append(self._link.traceback.rstrip())
        else:
            lines.append(f"  {type(error).__name__}: {link.short(error, text=True)}")
        return "\n".join(lines)


class MissingEntry(Exception):
    """The program does not define the function that the tests are about."""


def _imported(library: str) -> types.ModuleType | None:
    """A library, from the tests' own side; ``None`` where it is not here."""
    try:
        return importlib.import_module(library)
    except Exception:
        return None


def _count(script: asserts.Script) -> int:
    return sum(unit.counts for unit in script.units)


def _sides(error: asserts.Failed) -> list[str]:
    lines = []
    if error.sides is not None:
        got, expected = (link.short(side) for side in error.sides)
        lines.append(f"  expected {expected}, got {got}" if error.equality else f"  compared {got} with {expected}")
    if error.note is not None:
        lines.append(f"  {link.short(error.note, text=True)}")
    return lines
