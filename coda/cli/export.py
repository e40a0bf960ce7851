"""``coda export``: a compiled pipeline's prompts for use anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from coda.cli.console import note
from coda.cli.console import out as stdout
from coda.errors import UsageError
from coda.optimize.artifact import check_prompts
from coda.optimize.export import Format, differing_files
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
        check: Write nothing; render again, and say which of the files in --out (by default: of the prompts in the
            compiled pipeline itself) are not what is rendered now. Ends with 1 where there are some.
    """
    if format == "mlflow":
        if check:
            raise UsageError("--check compares prompts; an MLflow model is checked by its hashes when it is loaded.")
        return _model(folder, out or folder.with_name(f"{folder.name}-mlflow"))
    if check:
        return _check(folder, format, out)
    for path in write_prompts(folder, format, out or folder.with_name(f"{folder.name}-prompts")):
        stdout.print(str(path), markup=False)
    return 0


def _model(folder: Path, out: Path) -> int:
    from coda.experiments.registry import write_model

    write_model(folder, out)
    stdout.print(str(out), markup=False)
    return 0


def _check(folder: Path, format: Format, out: Path | None) -> int:
    if out is None:
        stale = [folder / "prompts" / name for name in check_prompts(folder)]
    else:
        stale = differing_files(folder, format, out)
    for path in stale:
        note(f"{path} is not what the program renders now.")
    return 1 if stale else 0
