"""Rows from the Hugging Face hub, through ``datasets`` and its cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coda.errors import DataError

Row = dict[str, Any]

_UNREACHABLE = {"ConnectionError", "OfflineModeIsEnabled", "LocalEntryNotFoundError", "TimeoutError", "TransportError"}
_MISSING = {"DatasetNotFoundError", "RepositoryNotFoundError", "DataFilesNotFoundError"}


@dataclass(frozen=True)
class Source:
    """Where on the hub rows are.

    Attributes:
        repository: ``owner/name``.
        config: The data set's configuration, where it has several.
        revision: The commit; ``None`` for the newest.
    """

    repository: str
    config: str | None = None
    revision: str | None = None

    def __str__(self) -> str:
        """As messages and records name it."""
        config = f":{self.config}" if self.config else ""
        return f"hf:{self.repository}{config}" + (f"@{self.revision[:12]}" if self.revision else "")


def rows(source: Source, split: str) -> Iterator[tuple[str, Row]]:
    """The rows of one split, each with the words that say where it stands.

    What was fetched before is taken from the cache of ``datasets``, also without a network.

    Raises:
        DataError: They cannot be had; the message says why and what to do.
    """
    import datasets

    try:
        table = datasets.load_dataset(source.repository, source.config, split=split, revision=source.revision)
    except Exception as error:  # what is raised here comes from four libraries and changes with their versions
        raise DataError(_explained(source, split, error)) from error
    for number, row in enumerate(table, start=1):
        yield f"{source}, {split} row {number}", row


def splits(source: Source) -> list[str]:
    """The names of a data set's splits.

    Raises:
        DataError: They cannot be had.
    """
    import datasets

    try:
        found = datasets.get_dataset_split_names(source.repository, source.config, revision=source.revision)
    except Exception as error:
        raise DataError(_explained(source, "any", error)) from error
    return [str(name) for name in found]


def _explained(source: Source, split: str, error: Exception) -> str:
    """What went wrong, told by the error's family and what it says."""
    chain = list(_causes(error))
    kinds = {kind.__name__ for each in chain for kind in type(each).__mro__}
    said = " ".join(str(each) for each in chain).lower()
    page = f"https://huggingface.co/datasets/{source.repository}"
    return f"{source} {_reason(kinds, said, page, split, error)} A local copy can be given with --data-file."


def _reason(kinds: set[str], said: str, page: str, split: str, error: Exception) -> str:
    if "GatedRepoError" in kinds or "gated" in said:
        return (
            f"is gated: its owners want their terms accepted first. Accept them at {page}, then log in with "
            '"hf auth login" or set HF_TOKEN.'
        )
    if "RevisionNotFoundError" in kinds or "revision '" in said:
        return f"has lost this revision: the data set was moved or rewritten. See {page}."
    if kinds & _UNREACHABLE:
        return "is not in the cache, and the hub cannot be reached. Check the network, and HF_HUB_OFFLINE."
    if kinds & _MISSING:
        return f"does not exist, or not for you: private data sets need HF_TOKEN. See {page}."
    if isinstance(error, ValueError) and ("config" in said or "split" in said):
        return f"has no split {split!r} or no such configuration: {error} See {page}."
    return f"cannot be loaded: {type(error).__name__}: {error} See {page}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
