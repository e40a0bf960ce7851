"""Export: write the prompts of a program, or of a compiled one in a folder, for use anywhere."""

from __future__ import annotations

from pathlib import Path

from coda.errors import UsageError
from coda.optimize.artifact import load, read_manifest
from coda.optimize.prompts import Format, render
from coda.program.conductor import Coda

__all__ = ["Format", "export"]


def export(source: Coda | Path, format: Format, out: Path) -> list[Path]:
    """Write the prompts.

    Args:
        source: The program, or the folder of a compiled one.
        format: The format, see `Format`.
        out: The folder for the files, which is made; for ``python`` a file, where the name ends with ``.py``.

    Returns:
        The files that were written.

    Raises:
        UsageError: There is no such format, or the files cannot be written.
        ArtifactError: The folder's artefact cannot be loaded.
    """
    if isinstance(source, Path):
        rendered = render(load(source), format, model=read_manifest(source).model)
    else:
        rendered = render(source, format, model=source.engine.config.model if source.engine is not None else "")
    single = format == "python" and out.suffix == ".py"
    paths = []
    try:
        for name, content in rendered.items():
            paths.append(out if single else out / name)
            paths[-1].parent.mkdir(parents=True, exist_ok=True)
            paths[-1].write_bytes(content)
    except OSError as error:
        raise UsageError(f"Cannot write to {out}: {error.strerror}. Choose another place.") from error
    return paths
