"""What makes results belong together: the program that was measured, reduced to values that can be compared."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from coda import __version__
from coda.program.types import Problem, Solution

ABSENT = "(absent)"


class Program(Protocol):
    """What can be measured: `Coda`, a baseline, or anything else that solves problems.

    `identify` also reads, where they are there, ``settings``, ``engine``, ``sandbox`` and ``named_predictors()``.
    """

    async def asolve(self, problem: Problem) -> Solution:
        """Solve a problem. An Engine that fails is no exception: ``Solution.stopped`` says it."""
        ...


def identify(program: Program) -> dict[str, Any]:
    """All of a program that its results depend on, as plain JSON values.

    Two programs with the same identity send the same requests for the same problem. The server's address is not part
    of it: a run may go on when a server has moved. Keys never are.
    """
    settings = getattr(program, "settings", None)
    engine = getattr(program, "engine", None)
    return {
        "name": name_of(program),
        "settings": settings.model_dump(mode="json") if settings is not None else {},
        "predictors": _predictors(program),
        "model": model_of(program),
        "profile": f"{engine.profile.name} ({fingerprint(engine.profile.model_dump())})" if engine is not None else "",
        "effort": engine.config.effort if engine is not None else None,
        "verifier_model": _verifier_model(program),
        "seed": engine.config.seed if engine is not None else None,
        "sandbox": sandbox_of(program),
    }


def provenance(program: Program) -> dict[str, str | None]:
    """What is good to know of a run and may differ when it goes on: when, by what, and where the Engine was."""
    engine = getattr(program, "engine", None)
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "coda": __version__,
        "git": git_revision(),
        "api_base": without_password(engine.config.api_base) if engine is not None else None,
    }


def name_of(program: Program) -> str:
    """What kind of program it is: the name that it gives itself, else its class's."""
    return str(getattr(program, "name", type(program).__name__))


def model_of(program: Program) -> str:
    """The model behind the program; empty where it has no Engine of its own."""
    engine = getattr(program, "engine", None)
    return str(engine.config.model) if engine is not None else ""


def _verifier_model(program: Program) -> str | None:
    """The model that verifies, where it is another one."""
    engine = getattr(getattr(program, "verifier", None), "engine", None)
    return str(engine.config.model) if engine is not None else None


def sandbox_of(program: Program) -> str:
    """The isolation that the program's own programs run in; ``none`` where it has no sandbox."""
    return str(getattr(getattr(program, "sandbox", None), "level", "none"))


def _predictors(program: Program) -> dict[str, str]:
    """For each predictor, a hash of what it makes of its inputs: instruction, fields and demos."""
    named = getattr(program, "named_predictors", None)
    return {} if named is None else {name: fingerprint(predictor.dump_state()) for name, predictor in named()}


def fingerprint(value: Any) -> str:
    """Twelve hex digits of the hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def without_password(address: str | None) -> str | None:
    """An address as it may be shown and stored: without user, password and query."""
    parts = urlsplit(address or "")
    if not (parts.query or "@" in parts.netloc):
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def differing(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The dotted names whose values differ, each with the value held and the value wanted (or `ABSENT`)."""
    one, other = flat(held), flat(wanted)
    names = sorted(one.keys() | other.keys())
    pairs = {name: (one.get(name, ABSENT), other.get(name, ABSENT)) for name in names}
    return {name: (first, second) for name, (first, second) in pairs.items() if first != second}


def git_revision(folder: Path | None = None) -> str | None:
    """The commit that is checked out in a folder (by default the current one), where there is one."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
