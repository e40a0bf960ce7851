"""The problems' stories as the page holds them: a small index of all, and the stories themselves in compressed blocks.

A page with thousands of stories must open at once, so that a story is unpacked when it is looked at. Blocks are gzip in
base64, which no text in them can break out of, whatever a model wrote.
"""

from __future__ import annotations

import base64
import gzip
import heapq
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from coda.experiments.report.runs import Run
from coda.optimize.findings import finding
from coda.optimize.records import Record, read_results

BLOCK = 40
"""Stories in a block: unpacking one takes milliseconds."""

BUDGET = 13_000_000
"""Bytes that all blocks may have together; the page then stays below 15 MB."""

LENGTHS = (20_000, 4_000, 1_500, 500)
"""Characters that one text of a story may have; the first of these with which all stories fit."""

SEARCHABLE = 400
"""Characters of a problem that the search looks at."""

_TOP = ("answer", "score", "correct", "error", "early_exit", "stopped", "plan", "attempts", "verdict", "stages")


@dataclass(frozen=True)
class Stories:
    """What the page needs.

    Attributes:
        index: One block, of an entry for each problem.
        blocks: The stories, `BLOCK` of them in each, in the index's order.
        problems: How many there are.
        cut: Characters to which texts were cut; ``None`` where all are whole.
    """

    index: str
    blocks: tuple[str, ...]
    problems: int
    cut: int | None


def tell(runs: Sequence[Run]) -> Stories:
    """Read all results and pack them, shortened so far that they fit.

    Raises:
        RunError: Results cannot be read.
    """
    for most in LENGTHS:
        packer = _Packer(most, BUDGET if most != LENGTHS[-1] else None)
        if packer.pack(runs):
            break
    index = pack({"block": BLOCK, "problems": packer.index})
    return Stories(index, tuple(packer.blocks), len(packer.index), most if packer.shortened else None)


def pack(document: Any) -> str:
    """A JSON document as base64 of gzip; the same document gives the same text."""
    plain = json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(plain, compresslevel=9, mtime=0)).decode()


def unpack(text: str) -> Any:
    """What `pack` was given."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


class _Packer:
    """Packs stories as they come, and gives up when they are more than the budget."""

    def __init__(self, most: int, budget: int | None) -> None:
        self._most = most
        self._budget = budget
        self.shortened = False
        self.index: list[Any] = []
        self.blocks: list[str] = []

    def pack(self, runs: Sequence[Run]) -> bool:
        """Whether all fit."""
        size = 0
        for group in _batches(_by_problem(runs), BLOCK):
            self.blocks.append(pack([self._story(number, found) for number, found in group]))
            self.index += [_entry(found, len(runs)) for _, found in group]
            size += len(self.blocks[-1])
            if self._budget is not None and size > self._budget:
                return False
        return True

    def _story(self, benchmark: str, found: Sequence[tuple[int, Record]]) -> dict[str, Any]:
        first = found[0][1]
        results = []
        for run, record in found:
            kept = record.model_dump(mode="json", include=set(_TOP), exclude_defaults=True)
            usage = {"calls": record.usage.calls, "tokens": record.usage.tokens, "seconds": round(record.seconds, 2)}
            loss = finding(record).loss
            results.append({"run": run, "sample": record.sample, "lost": loss, **usage, **kept})
        problem = first.problem.model_dump(mode="json", exclude_defaults=True)
        story = {"id": first.id, "benchmark": benchmark, "problem": problem, "expected": first.expected}
        return self._cut({**story, "results": results})  # type: ignore[no-any-return]

    def _cut(self, value: Any) -> Any:
        """The value with long texts cut in the middle: how a text begins and ends says most."""
        if isinstance(value, str) and len(value) > self._most:
            self.shortened = True
            head, tail = self._most * 2 // 3, self._most // 3
            return f"{value[:head]}\n[… {len(value) - head - tail} characters …]\n{value[-tail:]}"
        if isinstance(value, dict):
            return {key: self._cut(part) for key, part in value.items()}
        return [self._cut(part) for part in value] if isinstance(value, list) else value


def _by_problem(runs: Sequence[Run]) -> Iterator[tuple[str, list[tuple[int, Record]]]]:
    """For each benchmark and problem, what all runs made of it, in the runs' order; one problem in memory at a time."""

    def keyed(number: int, run: Run) -> Iterator[tuple[tuple[str, str, int, int], Record]]:
        for record in read_results(run.path):
            yield (run.summary.benchmark, record.id, number, record.sample), record

    streams = (keyed(number, run) for number, run in enumerate(runs))
    merged = heapq.merge(*streams, key=lambda item: item[0])  # each stream is ordered by id and sample
    for (benchmark, _), found in itertools.groupby(merged, key=lambda item: item[0][:2]):
        yield benchmark, [(key[2], record) for key, record in found]


def _entry(found: Sequence[tuple[int, Record]], runs: int) -> list[Any]:
    """Id, what the search looks at, and for each run the share of right samples, where it was lost, and its tokens."""
    first = found[0][1]
    cells: list[list[Any] | None] = [None] * runs
    for run, records in itertools.groupby(found, key=lambda pair: pair[0]):
        samples = [record for _, record in records]
        losses = [loss for loss in (finding(record).loss for record in samples) if loss is not None]
        right = sum(record.correct for record in samples) / len(samples)
        cells[run] = [round(right, 3), losses[0] if losses else None, sum(record.usage.tokens for record in samples)]
    return [first.id, first.problem.text[:SEARCHABLE], cells]


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch
