"""``coda export``: a compiled pipeline's prompts for use anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from coda.cli.console import note
from coda.optimize.artifact import check_prompts
from coda.optimize.export import export as write_prompts


def export(
    folder: Path,
    *,
    format: Literal["messages", "markdown", "jinja", "python", "mlflow"] = "markdown",
    out: Annotated[Path | None, Parameter(name="--out")] = None,
    check: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Write a compiled pipeline's prompts so that they can be used without DSPy.

    Args:
        folder: The compiled pipeline.
        format: "messages" (OpenAI JSON with slots), "markdown" (to read), "jinja" (templates), "python" (one file that
            runs the prompts with the standard library alone), or "mlflow" (a model for `mlflow models serve`).
        out: Where to; by default FOLDER-prompts, or FOLDER-mlflow.
        check: Write nothing; render the prompts in the folder again and say which are not as they should be.
    """
    from coda.cli.console import out as stdout

    if check:
        stale = check_prompts(folder)
        for name in stale:
            note(f"{folder / 'prompts' / name} is not what the program renders now.")
        return 1 if stale else 0
    if format == "mlflow":
        from coda.experiments.registry import write_model

        model = out or folder.with_name(f"{folder.name}-mlflow")
        write_model(folder, model)
        stdout.print(str(model), markup=False)
        return 0
    target = out or folder.with_name(f"{folder.name}-prompts")
    for path in write_prompts(folder, format, target):
        stdout.print(str(path), markup=False)
    return 0
