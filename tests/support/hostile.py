"""Runs the table of hostile programs, with bait on the host: a secret, listeners, a file.

As a script it prints the results as JSON, so that the suite can also be run as another user:
``python hostile.py FOLDER``.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import socket
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coda import errors
from coda.program.tools.sandbox import RunLimits, Sandbox

SECRET = "the-host-keeps-this-to-itself"


@dataclasses.dataclass(frozen=True)
class Hostile:
    """A program, and what must come of it."""

    name: str
    code: str
    expect: tuple[str, ...]
    limits: RunLimits
    prints: str | None = None
    says: str | None = None
    status: int | None = None


def table(folder: Path) -> list[Hostile]:
    """All programs, theme by theme."""
    return [_row(file.stem, row) for file in sorted(folder.glob("*.toml")) for row in _programs(file)]


def _programs(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))["program"]
    return rows


def _row(theme: str, row: dict[str, Any]) -> Hostile:
    expect = row["expect"]
    limits = RunLimits(timeout=float(row.get("timeout", 10.0)), memory_mb=row.get("memory_mb", 256))
    return Hostile(
        name=f"{theme}: {row['name']}",
        code=row["code"],
        expect=(expect,) if isinstance(expect, str) else tuple(expect),
        prints=row.get("prints"),
        says=row.get("says"),
        status=row.get("status"),
        limits=limits,
    )


@contextlib.contextmanager
def bait() -> Iterator[dict[str, str]]:
    """What the programs are after; the values replace ``{name}`` in their code."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        (folder / "secret").write_text(SECRET)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", port))
        abstract = f"coda-test-{os.getpid()}"
        for address in (f"\0{abstract}", str(folder / "socket")):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        os.environ["CODA_TEST_SECRET"] = SECRET
        stack.callback(os.environ.pop, "CODA_TEST_SECRET")
        yield {
            "secret": SECRET,
            "secret_file": str(folder / "secret"),
            "root": str(Path(errors.__file__).resolve().parents[1]),
            "port": str(port),
            "abstract": abstract,
            "socket_file": str(folder / "socket"),
        }


def armed(code: str, values: dict[str, str]) -> str:
    """The program, pointed at the bait."""
    for name, value in values.items():
        code = code.replace(f"{{{name}}}", value)
    return code


async def run_all(sandbox: Sandbox, programs: list[Hostile]) -> list[str | None]:
    """Run them, a few at a time; what is wrong with each result, ``None`` where nothing is."""
    with bait() as values:

        async def one(program: Hostile) -> str | None:
            execution = await sandbox.run(armed(program.code, values), limits=program.limits)
            return complaint(program, execution.model_dump())

        return list(await asyncio.gather(*map(one, programs)))


def complaint(program: Hostile, execution: dict[str, Any]) -> str | None:
    """What is wrong with a result."""
    shown = {key: execution[key] for key in ("outcome", "exit_status", "feedback", "stdout", "stderr", "seconds")}
    shown = {key: value[:300] if isinstance(value, str) else value for key, value in shown.items()}
    if "ESCAPED" in execution["stdout"] or SECRET in execution["stdout"] + execution["stderr"]:
        return f"it escaped: {shown}"
    if execution["outcome"] not in program.expect:
        return f"not {' or '.join(program.expect)}: {shown}"
    if program.prints is not None and execution["stdout"].strip() != program.prints:
        return f"it did not print {program.prints!r}: {shown}"
    if program.says is not None and program.says not in execution["feedback"]:
        return f"the feedback does not say {program.says!r}: {shown}"
    if program.status is not None and execution["exit_status"] != program.status:
        return f"its status is not {program.status}: {shown}"
    if execution["seconds"] > program.limits.timeout + 5:
        return f"it ran too long: {shown}"
    return None


def main() -> None:
    """Run the table of the folder named on the command line."""
    sandbox = Sandbox(workers=4)
    programs = table(Path(sys.argv[1]))
    complaints = asyncio.run(run_all(sandbox, programs))
    sandbox.close()
    wrong = {program.name: text for program, text in zip(programs, complaints, strict=True) if text is not None}
    print(json.dumps({"user": os.getuid(), "level": sandbox.level, "programs": len(programs), "wrong": wrong}))


if __name__ == "__main__":
    main()
