"""A whole program, run for what it prints."""

from __future__ import annotations

import atexit
import linecache
import os
import sys
import threading
import traceback
import types
from pathlib import Path
from typing import Any

NAME = "program.py"
OWN_MODULES: list[str] = []
"""The sandbox's own modules, which a program does not get to see; filled in by the template."""


def run(job: dict[str, Any], _: list[int]) -> None:
    """Run ``job["program"]`` as ``__main__`` and end the process as the interpreter would. Never returns."""
    module = prepare(job["program"], "__main__")
    status = 0
    try:
        exec(compile(job["program"], NAME, "exec"), module.__dict__)  # noqa: S102 - this is the point
    except SystemExit as leaving:
        status = _status(leaving.code)
    except BaseException as error:  # a program may raise anything
        status = 1
        show(error)
    leave(status)


def prepare(program: str, name: str) -> types.ModuleType:
    """Make the program's module, and a process in which nothing else of the sandbox's own code can be imported."""
    module = types.ModuleType(name)
    module.__dict__["__file__"] = NAME
    for loaded in OWN_MODULES:
        sys.modules.pop(loaded, None)
    sys.modules[name] = module
    sys.argv[:] = [NAME]
    sys.path[:] = [str(Path.cwd()), *(entry for entry in sys.path if entry != "/sandbox")]
    linecache.cache[NAME] = (len(program), None, program.splitlines(keepends=True), NAME)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="replace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    return module


def leave(status: int) -> None:
    """End the process as the interpreter does: threads, exit functions, buffers, status."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException as error:  # the program can break any of them
        status = status or 1
        show(error)
    os._exit(status)


def show(error: BaseException) -> None:
    """Print the error with the program's own lines to the error descriptor."""
    try:
        text = describe(error)
    except BaseException:  # the error is the program's own class, and can be hostile
        text = "an error that cannot be shown\n"
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except BaseException:  # noqa: S110 - see above
        pass
    os.write(2, text.encode("utf-8", "backslashreplace"))


def describe(error: BaseException) -> str:
    """A traceback of the program's own lines."""
    report = traceback.TracebackException.from_exception(error)
    _own_lines(report, 0)
    return "".join(report.format())


def _own_lines(report: traceback.TracebackException, depth: int) -> None:
    own = [frame for frame in report.stack if frame.filename == NAME]
    report.stack = traceback.StackSummary.from_list(own)
    for other in (report.__cause__, report.__context__):
        if other is not None and depth < 8:
            _own_lines(other, depth + 1)


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    os.write(2, f"{code}\n".encode("utf-8", "backslashreplace"))
    return 1
