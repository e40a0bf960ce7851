"""``coda harvest``: training sets from recorded runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import Field

from coda.cli.console import emit_json, note
from coda.cli.console import out as stdout
from coda.cli.options import Json
from coda.errors import UsageError


def harvest(
    *runs: Path,
    out: Annotated[Path, Parameter(name="--out")] = Path("training"),
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.1,
    allow_test: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> int:
    """Write training sets for verifiers, reflectors and self-correction from recorded runs.

    Args:
        runs: Run directories, or folders with run directories in them.
        out: Folder that the sets go into.
        validation: The share of problems that are kept for validation.
        allow_test: Also take runs on a test split. Never measure on it what was trained on them.
        json: Print the number of rows as one JSON document on stdout.
    """
    from coda.experiments.harvest import harvest as write

    if not runs:
        raise UsageError("coda harvest needs runs. Name run directories that `coda eval --run-dir` wrote.")
    counts = write(runs, out, validation=validation, allow_test=allow_test)
    if not counts:
        note("These runs teach nothing: no attempt came to an answer.")
    if json:
        emit_json(counts)
    else:
        for name, count in sorted(counts.items()):
            stdout.print(f"{out / name}.jsonl  {count} rows", markup=False)
    return 0
