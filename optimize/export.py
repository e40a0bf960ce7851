"""Export: write the prompts of a program, or of a compiled one in a folder, for use anywhere."""

from __future__ import annotations

from pathlib import Path

from coda.errors import UsageError
from coda.optimize.artifact import Manifest, load, read_manifest
from coda.optimize.prompts import Dialect, Format, render
from coda.program.conductor import Coda
from coda.program.engine.profiles import own_profiles

__all__ = ["Format", "differing_files", "export"]


def export(source: Coda | Path, format: Format, out: Path) -> list[Path]:
    """Write the prompts, as the program's Engine receives them.

    Args:
        source: The program, or the folder of a compiled one, whose manifest tells for which Engine.
        format: The format, see `Format`.
        out: The folder for the files, which is made; for ``python`` a file, where the name ends with ``.py``.

    Returns:
        The files that were written.

    Raises:
        UsageError: There is no such format, or the files cannot be written.
        ArtifactError: The folder's artefact cannot be loaded.
    """
    rendered = _rendered(source, format, out)
    try:
        for path, content in rendered.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(f"Cannot write to {out}: {error.strerror}. Choose another place.") from error
    return list(rendered)


def differing_files(source: Coda | Path, format: Format, out: Path) -> list[Path]:
    """The exported files that are not what `export` would write there now: changed, or missing.

    Args:
        source: The program, or the folder of a compiled one.
        format: The format.
        out: Where they were exported to.

    Raises:
        ArtifactError: The folder's artefact cannot be loaded.
    """
    rendered = _rendered(source, format, out)
    return [path for path, content in rendered.items() if not path.is_file() or path.read_bytes() != content]


def _rendered(source: Coda | Path, format: Format, out: Path) -> dict[Path, bytes]:
    """The files of an export, by where they go."""
    if isinstance(source, Path):
        manifest = read_manifest(source)
        files = render(load(source), format, dialect=_dialect(manifest), model=manifest.model)
    elif source.engine is not None:
        files = render(source, format, dialect=Dialect.of(source.engine), model=source.engine.config.model)
    else:
        files = render(source, format)
    single = format == "python" and out.suffix == ".py"
    return {out if single else out / name: content for name, content in files.items()}


def _dialect(manifest: Manifest) -> Dialect | None:
    """How the Engine that a program was compiled for is asked; ``None`` where its profile is not one of ours."""
    profile = own_profiles().get(manifest.profile)
    return None if profile is None else Dialect(profile, profile.level(manifest.effort))
