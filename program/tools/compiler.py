"""Programs in languages that are compiled: the compiler runs in the sandbox too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from coda.errors import SandboxError, UsageError
from coda.program.tools import results
from coda.program.tools.job import Job, RunLimits
from coda.program.tools.pool import Kind, Pool

COMPILE_LIMITS = RunLimits(timeout=60.0, memory_mb=2048, output_bytes=65536, processes=32)


@dataclass(frozen=True)
class Language:
    """A compiled language. Another is one more row of `LANGUAGES`.

    Attributes:
        title: Its name.
        source: Name of the source file.
        compilers: Programs that compile it, the preferred one first.
        options: What they are told, besides the files.
        libraries: What they are told after the files.
        package: The package that brings the compiler.
    """

    title: str
    source: str
    compilers: Sequence[str]
    options: Sequence[str]
    libraries: Sequence[str] = ()
    package: str = ""


LANGUAGES = {
    "c": Language("C", "program.c", ("gcc", "clang", "cc"), ("-O2", "-std=gnu17", "-Wall"), ("-lm",), "gcc"),
    "cpp": Language("C++", "program.cpp", ("g++", "clang++", "c++"), ("-O2", "-std=gnu++20", "-Wall"), (), "g++"),
}
PYTHON = "python"


@dataclass(frozen=True)
class Built:
    """What a compiler made.

    Attributes:
        binary: Descriptor of the executable, to be closed by the caller; ``None`` where the source does not compile.
        messages: What the compiler said.
    """

    binary: int | None
    messages: str


def known(language: str) -> str:
    """Check a language's name.

    Raises:
        UsageError: There is no such language here.
    """
    if language != PYTHON and language not in LANGUAGES:
        raise UsageError(f"Unknown language {language!r}: use one of {', '.join((PYTHON, *LANGUAGES))}.")
    return language


def compiler_of(language: str) -> str:
    """The path of the compiler.

    Raises:
        SandboxError: None is installed.
    """
    row = LANGUAGES[language]
    found = next((path for name in row.compilers if (path := shutil.which(name))), None)
    if found is None:
        raise SandboxError(
            f"No {row.title} compiler ({', '.join(row.compilers)}): install the package `{row.package}`."
        )
    return found


async def build(pool: Pool, language: str, source: str) -> Built:
    """Compile a program.

    Raises:
        SandboxError: There is no compiler, or the sandbox cannot be started.
    """
    row, compiler = LANGUAGES[language], compiler_of(language)
    made = os.memfd_create("program", os.MFD_CLOEXEC)
    try:
        payload = {
            "role": "build",
            "program": source,
            "source": row.source,
            "output": "program",
            "command": [compiler, *row.options, "-o", "program", row.source, *row.libraries],
        }
        ended = await pool.use(
            Kind(compiler=compiler), lambda template: Job(template, payload, COMPILE_LIMITS, extra=[made]).run()
        )
        messages = results.text(ended.stderr + ended.stdout, COMPILE_LIMITS, ended.reason)
        if results.outcome_of(ended, messages) == "ok":
            return Built(_read_only(made), messages)
        why = results.feedback(results.outcome_of(ended, messages), ended, messages, COMPILE_LIMITS)
        return Built(None, f"The program does not compile.\n{why.replace('The program', 'The compiler')}")
    finally:
        os.close(made)


def _read_only(binary: int) -> int:
    """Open it again, read-only: a file that is open for writing cannot be executed."""
    return os.open(f"/proc/self/fd/{binary}", os.O_RDONLY | os.O_CLOEXEC)
