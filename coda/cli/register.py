"""``coda register``: a compiled pipeline in MLflow's model registry, and its tuned prompts in the prompt registry."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from coda.cli.console import emit_json, out
from coda.cli.options import Json, TrackingOptions
from coda.experiments.registry import register as register_pipeline
from coda.optimize.artifact import read_manifest


def register(
    folder: Path,
    *,
    name: str | None = None,
    results: Path | None = None,
    force: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
    tracking: TrackingOptions | None = None,
) -> int:
    """Register a compiled pipeline in MLflow as a model that loads and answers anywhere.

    The alias "champion" moves to it only on proof: for a first version that it is better than the uncompiled pipeline
    (the comparison in its manifest), else that it is better than the champion on the problems that both were measured
    on.

    Args:
        folder: The compiled pipeline.
        name: The registered model; by default coda-MODEL-BENCHMARK.
        results: Run directory of an evaluation of this pipeline, for the comparison with the champion.
        force: Make it the champion without a proof.
        json: Print one JSON document on stdout.
        tracking: Where MLflow is.
    """
    manifest = read_manifest(folder)
    tags = {"coda.kind": "register", "coda.model": manifest.model}
    with (tracking or TrackingOptions()).tracker().run(f"register {folder.name}", tags=tags) as run:
        found = register_pipeline(folder, run, name=name, results=results, force=force)
    if json:
        emit_json({**asdict(found), "uri": found.uri})
        return 0
    out.print(f"{found.uri}{' (was there already)' if found.known else ''}", markup=False)
    out.print(f"champion: {'yes' if found.champion else 'no'}. {found.why}", markup=False)
    for prompt in found.prompts:
        out.print(f"prompts:/{prompt}", markup=False)
    return 0
