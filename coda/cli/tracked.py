"""``coda runs`` and ``coda ui``: what MLflow has tracked, in the terminal and in its own user interface."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import Field
from rich.table import Table

from coda.cli.console import emit_json, out
from coda.cli.options import Json
from coda.experiments.tracked import Filter, existing_store, list_runs, serve


def runs(
    *,
    wanted: Annotated[Filter | None, Parameter(name="*")] = None,
    limit: Annotated[int, Field(ge=1)] = 30,
    experiment: str = "coda",
    tracking_uri: str | None = None,
    json: Json = False,
) -> int:
    """List tracked runs, newest first.

    Args:
        wanted: Which runs.
        limit: At most so many.
        experiment: The MLflow experiment.
        tracking_uri: An MLflow server or store; by default runs/mlflow.db.
        json: Print one JSON document on stdout.
    """
    found = list_runs(tracking_uri, Path("runs"), experiment, wanted or Filter(), limit=limit)
    if json:
        emit_json([asdict(row) for row in found])
        return 0
    table = Table("started", "name", "kind", "benchmark", "model", "status", "accuracy", "n", "tokens", "id", box=None)
    for row in found:
        accuracy = "" if row.accuracy is None else f"{row.accuracy:.1%}"
        numbers = ("" if value is None else str(value) for value in (row.n, row.tokens))
        table.add_row(
            row.started, row.name, row.kind, row.benchmark, row.model, row.status, accuracy, *numbers, row.id[:8]
        )
    out.print(table)
    return 0


def ui(*, port: Annotated[int | None, Field(ge=1, le=65535)] = None, tracking_uri: str | None = None) -> int:
    """Open MLflow's user interface on the tracked runs, until Ctrl-C.

    Args:
        port: By default a free one.
        tracking_uri: An MLflow store; by default runs/mlflow.db.
    """
    serve(existing_store(tracking_uri, Path("runs")), port, lambda address: out.print(address, markup=False))
    return 0
