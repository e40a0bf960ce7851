"""Replies on the disk, so that the same request is never paid for twice, in this process or another."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import diskcache

from coda.errors import UsageError
from coda.program.concurrency import in_default_pool
from coda.program.engine.replies import Reply
from coda.program.types import Usage

FORMAT = 1
"""Changes when the stored form does; entries of another form are not used."""


class ReplyCache:
    """Replies by the hash of their whole request.

    Args:
        folder: Where they are kept; made if need be. Several processes may share it.
        megabytes: Its size; the replies that were not used for the longest time give way.

    Raises:
        UsageError: The folder cannot be used.
    """

    def __init__(self, folder: Path, megabytes: int) -> None:
        try:
            self._cache = diskcache.Cache(
                str(folder),
                disk=_Text,
                size_limit=megabytes * 2**20,
                eviction_policy="least-recently-used",
                timeout=10,
            )
        except Exception as error:
            raise UsageError(f"The reply cache {folder} cannot be used ({error}). Give another --cache-dir.") from error

    async def get(self, key: str) -> Reply | None:
        """The reply to a request, if it is there. A cache that fails is as good as an empty one."""
        stored = await in_default_pool(self._get, key)
        return _load(stored) if isinstance(stored, str) else None

    async def put(self, key: str, reply: Reply) -> None:
        """Keep a reply, if the disk allows it."""
        await in_default_pool(self._put, key, json.dumps({"format": FORMAT, **asdict(reply), "usage": _dump(reply)}))

    def close(self) -> None:
        """Close the files."""
        self._cache.close()

    def _get(self, key: str) -> Any:
        try:
            return self._cache.get(key)
        except Exception:  # whatever the disk and SQLite come up with, the Engine can still be asked
            return None

    def _put(self, key: str, text: str) -> None:
        try:
            self._cache.set(key, text)
        except Exception:  # see above; the reply is there, and it was paid for
            return


class _Text(diskcache.Disk):
    """Stores text, and never unpickles what it finds."""

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
        """Return a value's text; ``None`` for what we did not store."""
        if mode == diskcache.core.MODE_PICKLE:
            return None
        return super().fetch(mode, filename, value, read)


def _dump(reply: Reply) -> dict[str, Any]:
    return reply.usage.model_dump()


def _load(text: str) -> Reply | None:
    try:
        stored = json.loads(text)
        if stored.pop("format") != FORMAT:
            return None
        return Reply(**{**stored, "usage": Usage(**stored["usage"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
