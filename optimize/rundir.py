"""The run directory: what an evaluation leaves on disk, and how it goes on after an interruption.

    config.json     what the run measures; another configuration is refused
    results.jsonl   one `Record` per line, appended as each problem ends; of two lines with one key the later counts
    calls.jsonl     the Engine's ledger
    summary.json    the `Summary`, written whole or not at all

A process holds an exclusive lock while it writes. The lock dies with the process, so ``kill -9`` leaves none behind.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel

from coda.errors import RunError
from coda.optimize.identity import ABSENT, differing
from coda.optimize.records import Record, parse_line

log = logging.getLogger("coda.run")

SCHEMA = 1

SYNC_EVERY = 1.0
"""Seconds between forced writes to the disk while results come. A crash of the process loses nothing all the same."""


class RunDirectory:
    """A run directory opened for writing, by one process at a time.

    Args:
        path: The folder; made where it does not exist.

    Raises:
        RunError: Another process is using it, or it cannot be written.

    Example:
        >>> with RunDirectory(Path("runs/first")) as run:  # doctest: +SKIP
        ...     run.claim({"benchmark": "words"})
        ...     run.append(record)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results = -1
        self._synced = 0.0
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"Run directory {path}: {error.strerror}. Name a folder that can be written.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._lock, 32).decode().strip()
            os.close(self._lock)
            raise RunError(
                f"Run directory {path} is in use by another process{f' ({holder})' if holder else ''}. "
                "Wait for it to end, or name another folder."
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"pid {os.getpid()}\n".encode(), 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Force what was written to the disk, and release the lock."""
        if self._results >= 0:
            os.fsync(self._results)
            os.close(self._results)
            self._results = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def calls(self) -> Path:
        """Where the ledger goes."""
        return self.path / "calls.jsonl"

    def claim(self, identity: Mapping[str, Any], notes: Mapping[str, Any] | None = None) -> None:
        """Say what this run measures: store it in a new directory, compare it with what an old one holds.

        Args:
            identity: All that must be the same for results to belong together; plain JSON values.
            notes: What is good to know and may differ from command to command.

        Raises:
            RunError: The directory holds another configuration; the message names the keys that differ.
        """
        wanted = json.loads(json.dumps(identity))
        if (self.path / "config.json").exists():
            held = read_config(self.path)
            differences = differing(held["identity"], wanted)
            if differences:
                raise RunError(
                    f"Run directory {self.path} holds another configuration: {_listed(differences)}. "
                    "Use the same options to go on with it, or name another folder."
                )
            return
        if (self.path / "results.jsonl").exists():
            raise RunError(f"Run directory {self.path} has results but no config.json. Name another folder.")
        document = {"schema": SCHEMA, "identity": wanted, "notes": dict(notes or {})}
        write_whole(self.path / "config.json", document)

    def resume(self) -> Iterator[Record]:
        """Yield the records that are here already, and repair a last line that was cut off by a crash.

        Of two records with the same key both are yielded, in the order in which they were written.

        Raises:
            RunError: A line in the middle is damaged.
        """
        file = self.path / "results.jsonl"
        if not file.exists():
            return
        whole, rest = 0, b""
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    rest = line
                    break
                yield parse_line(line, file, number)
                whole += len(line)
        if rest:
            os.truncate(file, whole)
            log.warning("%s: the last line was cut off by a crash; it is removed, its problem is asked again.", file)

    def append(self, record: Record) -> None:
        """Add a record. It survives the death of the process at once, that of the machine after the next forced write.

        Raises:
            RunError: The disk is full or failing; nothing of the record is left in the file.
        """
        if self._results < 0:
            self._results = os.open(self.path / "results.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        start = os.lseek(self._results, 0, os.SEEK_END)
        rest = memoryview(record.model_dump_json().encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._results, rest) :]
            if time.monotonic() - self._synced > SYNC_EVERY:
                os.fsync(self._results)
                self._synced = time.monotonic()
        except OSError as error:
            os.ftruncate(self._results, start)
            raise RunError(
                f"Run directory {self.path}: a result could not be written: {error.strerror}. What was written before "
                "is whole. Make room on the disk and run the same command again."
            ) from error

    def write_summary(self, summary: BaseModel) -> None:
        """Replace ``summary.json``, whole or not at all."""
        write_whole(self.path / "summary.json", summary.model_dump(mode="json"))


def write_whole(file: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON file so that a reader sees the old content or the new, never a part.

    Raises:
        RunError: The disk is full or failing; the old content is still there.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            json.dump(document, stream, ensure_ascii=False, indent=2)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RunError(
            f"{file} could not be written: {error.strerror}. Make room on the disk and try again."
        ) from error


def read_config(path: Path) -> dict[str, Any]:
    """The content of ``config.json``: ``schema``, ``identity``, ``notes``.

    Raises:
        RunError: There is none, or it cannot be read.
    """
    document = read_document(path / "config.json")
    if document.get("schema") != SCHEMA or not isinstance(document.get("identity"), dict):
        raise RunError(
            f"{path / 'config.json'} has schema {document.get('schema')!r}; this version of CODA reads {SCHEMA}. "
            "Read it with the version that wrote it."
        )
    return document


def read_document(file: Path) -> dict[str, Any]:
    """A JSON object of a run directory.

    Raises:
        RunError: It is missing or damaged.
    """
    try:
        document = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}. Give a run directory that `coda eval --run-dir` wrote.") from error
    except ValueError as error:
        raise RunError(f"{file} is damaged: {error}. Restore it, or begin in another folder.") from error
    if not isinstance(document, dict):
        raise RunError(f"{file} is damaged: it holds no JSON object. Restore it, or begin in another folder.")
    return document


def _listed(differences: Mapping[str, tuple[Any, Any]], most: int = 8) -> str:
    shown = [f"{key} is {_short(held)} there and {_short(now)} now" for key, (held, now) in differences.items()]
    more = f"; and {len(shown) - most} more" if len(shown) > most else ""
    return "; ".join(shown[:most]) + more


def _short(value: Any, most: int = 60) -> str:
    text = value if value == ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"
