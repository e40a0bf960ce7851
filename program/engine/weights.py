"""The embedded Engine's weights: where they are kept, and whether they are whole.

The cache folder is the user's (``CODA_CACHE_DIR`` overrides it). Beside the weights lies a note of their size, their
time of change and their checksum, so that 98 MB are hashed once and not at every start; when size or time no longer
fit the note, the file is hashed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from coda.errors import UsageError

EMBEDDED = "embedded"
"""The name by which users ask for the embedded Engine."""

FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432


@dataclass(frozen=True)
class Weights:
    """One file of weights in the user's cache."""

    name: str
    """What to give as ``--model``."""
    path: Path
    size: int
    """Bytes."""
    intact: bool
    """Whether the file's checksum is the published one."""


def folder() -> Path:
    """Return the folder in the user's cache that holds weights; it need not exist."""
    override = os.environ.get("CODA_CACHE_DIR")
    cache = Path(override).expanduser().absolute() if override else platformdirs.user_cache_path("coda")
    return cache / "weights"


def installed() -> list[Weights]:
    """List the weights in the user's cache, damaged ones included."""
    file = folder() / FILE_NAME
    if not file.is_file():
        return []
    return [Weights(EMBEDDED, file, file.stat().st_size, is_intact(file))]


def weights_path(model: str) -> Path:
    """Return the GGUF file that ``model`` names: ``embedded``, or the path of any local one.

    Raises:
        UsageError: The file is absent, damaged, or no GGUF file.
    """
    if model != EMBEDDED:
        return _local_file(model)
    file = folder() / FILE_NAME
    if not file.is_file():
        raise UsageError(f"The embedded Engine's weights are not installed ({file}): run `coda engine pull`.")
    if not is_intact(file):
        raise UsageError(f"The embedded Engine's weights are damaged ({file}): run `coda engine pull` to replace them.")
    return file


def is_intact(file: Path) -> bool:
    """Tell whether ``file`` holds exactly the embedded Engine's weights."""
    try:
        status = file.stat()
        if status.st_size != SIZE:
            return False
        seen = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        if _note(file) == seen | {"sha256": SHA256}:
            return True
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return False
    if digest != SHA256:
        return False
    _write_note(file, seen | {"sha256": digest})
    return True


def _local_file(model: str) -> Path:
    file = Path(model).expanduser().absolute()
    try:
        with file.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise UsageError(
            f"Cannot read the model file {file} ({error.strerror}): "
            f"give the path of a GGUF file, or `{EMBEDDED}` for the embedded Engine."
        ) from error
    if magic != b"GGUF":
        raise UsageError(f"{file} is not a GGUF file: give one, or `{EMBEDDED}` for the embedded Engine.")
    return file


def _note_path(file: Path) -> Path:
    return file.with_name(file.name + ".json")


def _note(file: Path) -> object:
    try:
        return json.loads(_note_path(file).read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _write_note(file: Path, note: dict[str, object]) -> None:
    # A cache folder that cannot be written to costs a hash at every start, no more.
    temporary = _note_path(file).with_suffix(f".{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(note), "utf-8")
        temporary.replace(_note_path(file))
    except OSError:
        temporary.unlink(missing_ok=True)
