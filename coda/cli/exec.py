"""``coda exec``: one program in the sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from pydantic import Field

from coda.cli.console import emit_json, note
from coda.cli.options import Json, Options

if TYPE_CHECKING:
    from coda.program.types import Execution

Language = Literal["python", "c", "cpp"]

_SUFFIXES: dict[str, Language] = {".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp"}


@Parameter(name="*")
class ExecOptions(Options):
    """What the program is and what it may use."""

    lang: Language | None = None
    """Its language; by default told by the file's ending, else Python."""
    stdin: Path | None = None
    """A file that it reads as its standard input."""
    timeout: Annotated[float, Field(gt=0)] = 10.0
    """Seconds that it may take."""
    memory: Annotated[int, Field(ge=16)] = 512
    """MiB of memory that it may use, beyond the interpreter's."""
    unsafe_local_exec: Annotated[bool, Parameter(negative=())] = False
    """Run it WITHOUT a sandbox where none can be had. It can then do all that you can."""


def exec_(
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    *,
    options: ExecOptions | None = None,
    json: Json = False,
) -> int:
    """Run one program in the sandbox and show what came of it; the exit status is 0 where all went well.

    Args:
        file: The program; - reads it from standard input.
        options: What it may use.
        json: Print one JSON document.
    """
    from coda.errors import SandboxError

    options = options or ExecOptions()
    execution = _run(file, options)
    if execution.outcome == "no-sandbox":
        raise SandboxError(execution.feedback)
    if json:
        emit_json(execution)
    else:
        sys.stdout.write(execution.stdout)
        sys.stdout.flush()
        sys.stderr.write(execution.stderr)
        note(_summary(execution))
    return 0 if execution.outcome == "ok" else 1


def _run(file: Path, options: ExecOptions) -> Execution:
    from coda.program.concurrency import run_sync
    from coda.program.tools.sandbox import RunLimits, shared_sandbox

    program, stdin = _read(file), _read(options.stdin) if options.stdin else ""
    sandbox = shared_sandbox(unsafe=options.unsafe_local_exec)
    if sandbox.level == "unsafe":
        note("WARNING: the program runs without a sandbox (--unsafe-local-exec).")
    limits = RunLimits(timeout=options.timeout, memory_mb=options.memory)
    language = options.lang or _SUFFIXES.get(file.suffix, "python")
    return run_sync(sandbox.run(program, language=language, stdin=stdin, limits=limits))


def _read(file: Path) -> str:
    from coda.errors import UsageError

    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}. Give the path of a readable file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no UTF-8 text ({error.reason} at byte {error.start}).") from error


def _summary(execution: Execution) -> str:
    """One line on the outcome, and the reason where it is not told yet."""
    memory = "" if execution.peak_memory_mb is None else f", {execution.peak_memory_mb:.0f} MiB"
    line = f"{execution.outcome} in {execution.seconds:.2f} s{memory}, isolation {execution.isolation}"
    told = execution.feedback.strip() in execution.stderr
    return line if told or not execution.feedback else f"{line}\n{execution.feedback}"
