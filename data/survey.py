"""What there is, and whether it is sound: behind ``coda data list`` and ``coda data check``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from coda.data.benchmarks import Benchmark, Split, load
from coda.data.bundled import BUNDLED, LICENCE
from coda.data.catalog import CATALOG
from coda.data.grading.reference import why_ungradable
from coda.data.splits import near_duplicates, sizes
from coda.program.types import Frozen

_TASKS = {"words": "math", "science": "choice", "functions": "code"}


class Entry(Frozen):
    """A benchmark, without its data."""

    name: str
    task: str
    about: str
    licence: str
    source: str
    gated: bool = False


class NearDuplicate(Frozen):
    """Two problems in different splits that are almost the same."""

    first: str
    second: str
    similarity: float


class Report(Frozen):
    """What a look through a benchmark's data found."""

    name: str
    digest: str
    sizes: dict[Split, int]
    near_duplicates: tuple[NearDuplicate, ...]
    repeated: tuple[tuple[str, ...], ...]
    """Ids of rows with one and the same problem."""
    ungradable: dict[str, str]
    """Ids of examples whose reference the grader cannot read, and why."""

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not (self.near_duplicates or self.repeated or self.ungradable)


def catalogue() -> tuple[Entry, ...]:
    """All benchmarks; nothing is loaded."""
    bundled = [
        Entry(name=name, task=_TASKS[name], about=about, licence=LICENCE, source="bundled")
        for name, about in BUNDLED.items()
    ]
    declared = [
        Entry(
            name=name, task=each.task, about=each.about, licence=each.licence, source=str(each.source), gated=each.gated
        )
        for name, each in CATALOG.items()
    ]
    return (*bundled, *declared)


def check(name: str, data_file: Path | None = None) -> Report:
    """Look through a benchmark, all splits.

    Args:
        name: The benchmark, or a file of your own.
        data_file: A local file in the benchmark's own schema.

    Raises:
        DataError: It cannot be loaded.
    """
    return examine(load(name, data_file=data_file))


def examine(benchmark: Benchmark) -> Report:
    """Look through a benchmark that is loaded."""
    by_problem: dict[str, list[str]] = defaultdict(list)
    for example in benchmark.examples:
        by_problem[example.problem.key].append(example.id)
    reasons = {example.id: why_ungradable(example) for example in benchmark.examples}
    return Report(
        name=benchmark.name,
        digest=benchmark.digest,
        sizes=sizes(benchmark.examples),
        near_duplicates=tuple(
            NearDuplicate(first=one.id, second=other.id, similarity=similarity)
            for one, other, similarity in near_duplicates(benchmark.examples)
        ),
        repeated=tuple(tuple(ids) for ids in by_problem.values() if len(ids) > 1),
        ungradable={identity: reason for identity, reason in reasons.items() if reason},
    )
