"""``coda report``: runs as one page that opens from the disk."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from coda.cli.console import emit_json, note
from coda.cli.console import out as stdout
from coda.cli.options import Json
from coda.errors import UsageError


def report(
    *runs: Path,
    out: Annotated[Path, Parameter(name="--out")] = Path("report"),
    title: str | None = None,
    json: Json = False,
) -> int:
    """Write a report on runs: one HTML page that needs no network, Markdown, and CSV.

    Args:
        runs: Run directories, or folders with run directories in them. The first run is what the others on the same
            benchmark are compared with; of a folder it is the one that began first.
        out: Folder that the report goes into.
        title: What stands on top of it.
        json: Print the names of the files as one JSON document on stdout.
    """
    from coda.experiments.report import gather, write_report

    if not runs:
        raise UsageError("coda report needs runs. Name run directories that `coda eval --run-dir` wrote.")
    contents = gather(runs, title)
    command = shlex.join(["coda", "report", *map(str, runs), "--out", str(out)])
    written = write_report(contents, out, made_by=command)
    for remark in contents.remarks:
        note(remark)
    if json:
        emit_json({name: str(file) for name, file in vars(written).items()})
    else:
        stdout.print(str(written.page), markup=False)
    return 0
