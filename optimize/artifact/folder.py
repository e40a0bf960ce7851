"""An artefact on the disk: a folder of JSON files, replaced as a whole, and read only when it is whole."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from coda.errors import ArtifactError
from coda.optimize.artifact.documents import KIND, SCHEMA_VERSION, Manifest, Policy, ProgramState
from coda.optimize.artifact.migrations import MIGRATIONS, Documents
from coda.optimize.artifact.state import program_of, state_of
from coda.optimize.prompts.formats import encode, render
from coda.program.conductor import Coda
from coda.program.engine import Engine
from coda.program.tools.sandbox import Sandbox

PROGRAM, POLICY, MANIFEST, PROMPTS = "program.json", "policy.json", "manifest.json", "prompts"

M = TypeVar("M", bound=BaseModel)


def save(program: Coda, folder: Path, *, manifest: Manifest, policy: Policy) -> None:
    """Write a program with its prompts.

    The folder appears, or an older artefact in it is replaced, in one step.

    Args:
        program: The program. Its Engine is not saved, and no key is.
        folder: Where; a folder that holds anything but an artefact is refused.
        manifest: Where the program comes from; the hashes are filled in.
        policy: What calibration learned.

    Raises:
        ArtifactError: The folder is something else, cannot be written, or the program holds what cannot be saved.
    """
    files = {PROGRAM: _document(state_of(program)), POLICY: _document(policy)}
    files |= {f"{PROMPTS}/{name}": content for name, content in prompt_files(program).items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    files[MANIFEST] = _document(manifest.model_copy(update={"schema_version": SCHEMA_VERSION, "files": hashes}))
    _replace(folder.resolve(), files)


def load(folder: Path, *, engine: Engine | None = None, sandbox: Sandbox | None = None) -> Coda:
    """Load a compiled program.

    It sends the same messages as the program that was saved. Where it comes from is in `read_manifest`, and what
    differs here from there in `Manifest.caveats`.

    Args:
        folder: The artefact.
        engine: The Engine that it will use.
        sandbox: Where programs run; by default the process's own.

    Raises:
        ArtifactError: The folder is no artefact, of an unknown schema, changed since it was saved, or made for another
            program.
    """
    documents = _read(folder)
    state = _validated(ProgramState, documents[PROGRAM], folder / PROGRAM)
    try:
        return program_of(state, engine=engine, sandbox=sandbox)
    except ArtifactError as error:
        raise ArtifactError(f"{folder}: {error}") from error


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an artefact that is whole; raises as `load` does."""
    return _validated(Manifest, _read(folder)[MANIFEST], folder / MANIFEST)


def read_policy(folder: Path) -> Policy:
    """The policy of an artefact that is whole; raises as `load` does."""
    return _validated(Policy, _read(folder)[POLICY], folder / POLICY)


def check_prompts(folder: Path) -> list[str]:
    """The files in ``prompts/`` that are not what the program sends: changed, missing, or belonging to no prompt.

    Raises:
        ArtifactError: The program itself cannot be loaded.
    """
    state = _validated(ProgramState, _read(folder, prompts=False)[PROGRAM], folder / PROGRAM)
    expected = prompt_files(program_of(state))
    found = {path.name: path.read_bytes() for path in (folder / PROMPTS).glob("*")}
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def prompt_files(program: Coda) -> dict[str, bytes]:
    """The files of ``prompts/``: Markdown for people, messages for machines."""
    return render(program, "markdown") | render(program, "messages")


def _document(document: BaseModel) -> bytes:
    """JSON, the same for the same values."""
    return encode(json.dumps(document.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n")


def _read(folder: Path, *, prompts: bool = True) -> Documents:
    """Read an artefact, check that it is whole, and bring it to the present schema."""
    manifest = _json(folder / MANIFEST, _content(folder, MANIFEST))
    if manifest.get("kind") != KIND:
        raise ArtifactError(f"{folder / MANIFEST} is not that of a compiled program. {_HINT}")
    version = manifest.get("schema_version")
    if type(version) is not int or (version != SCHEMA_VERSION and version not in MIGRATIONS):
        raise ArtifactError(
            f"{folder} has schema version {version}, and this coda reads up to {SCHEMA_VERSION}. "
            "Update coda (pip install -U coda-conductor), or compile again."
        )
    contents = _unchanged(folder, manifest.get("files"), prompts=prompts)
    documents = {MANIFEST: manifest, **{name: _json(folder / name, contents[name]) for name in (PROGRAM, POLICY)}}
    while version != SCHEMA_VERSION:
        try:
            documents = MIGRATIONS[version](documents)
        except (KeyError, TypeError, AttributeError) as error:
            raise ArtifactError(
                f"{folder} is damaged: it is not what schema version {version} holds ({error!r}). {_CHANGED}"
            ) from error
        version = documents[MANIFEST]["schema_version"]
    return documents


_HINT = "Give the folder that `coda compile` wrote."
_CHANGED = "Restore it, or load the original in Python, make the change there, and save it again."


def _unchanged(folder: Path, hashes: object, *, prompts: bool) -> dict[str, bytes]:
    """The files that the manifest names, when each has the hash that it names."""
    if not isinstance(hashes, dict) or not {PROGRAM, POLICY} <= hashes.keys():
        raise ArtifactError(f"{folder / MANIFEST} was changed: it does not name all files. {_CHANGED}")
    contents = {}
    for name, digest in hashes.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ArtifactError(f"{folder / MANIFEST} was changed: it names a file elsewhere, {name}. {_CHANGED}")
        if path.parts[0] == PROMPTS and not prompts:
            continue
        contents[name] = _content(folder, name)
        if hashlib.sha256(contents[name]).hexdigest() != digest:
            raise ArtifactError(f"{folder / name} was changed after it was saved. {_CHANGED}")
    return contents


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        if name == MANIFEST:
            raise ArtifactError(f"{folder} holds no compiled program: {name}: {error.strerror}. {_HINT}") from error
        raise ArtifactError(f"{folder / name} cannot be read: {error.strerror}. {_CHANGED}") from error


def _json(path: Path, content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON: {error}. {_HINT}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} holds no JSON object. {_HINT}")
    return value


def _validated(model: type[M], values: dict[str, Any], path: Path) -> M:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ArtifactError(
            f"{path}: {place}: {first['msg']}. Compile again, or use the coda that wrote it."
        ) from error


def ensure_replaceable(folder: Path) -> None:
    """Make sure that `save` may write here; asked before compiling, it saves what compiling would cost.

    Raises:
        ArtifactError: The folder holds something else than a compiled program.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ArtifactError(f"{folder} is a file. Choose another name for the folder.")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if other := sorted(there - _own_files(folder)):
        raise ArtifactError(f"{folder} holds other things than a compiled program ({other[0]}). Choose another folder.")


def _replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put the files into the folder's place; readers see the old folder or the new one, never a mixture.

    Between two renames there is, for an instant, none. What a process that died left behind is cleared away.
    """
    ensure_replaceable(folder)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    stale = fresh.with_suffix(".old")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        for name, content in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if folder.exists():
            shutil.rmtree(stale, ignore_errors=True)
            folder.rename(stale)
        try:
            fresh.rename(folder)
        except OSError:
            if stale.exists():
                stale.rename(folder)
            raise
    except OSError as error:
        raise ArtifactError(f"Cannot write {folder}: {error.strerror}. Choose another folder.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(stale, ignore_errors=True)


def _own_files(folder: Path) -> set[str]:
    """The files that belong to the artefact in a folder; none where there is no artefact."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return {MANIFEST, *manifest["files"]} if manifest["kind"] == KIND else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
