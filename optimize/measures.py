"""Each stage's own measure: what it did for the problems that passed through it.

| stage | measure |
|---|---|
| planner | coverage: the share of problems where a path led to a right answer; diversity: how much the paths differ |
| executor | the share of paths whose attempt is right; what refinement mended and spoilt |
| reflector | fixed − broken, over the problems where the attempts disagreed |
| verifier | how often it chose a right answer where there was one |

They are made of the run's own records, so that whatever was measured can be asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from coda.optimize.records import GradedAttempt, Record
from coda.program.planner import likeness
from coda.program.types import Frozen, Path


class Share(Frozen):
    """So many of so many."""

    hits: float = 0.0
    of: int = 0

    @property
    def value(self) -> float | None:
        """The share; ``None`` of nothing."""
        return self.hits / self.of if self.of else None

    def __add__(self, other: Share) -> Share:
        """Both together."""
        return Share(hits=self.hits + other.hits, of=self.of + other.of)


class StageMeasures(Frozen):
    """The measures of all stages, of one problem or of many."""

    coverage: Share = Share()
    """Planner: problems where a path led to a right answer, of those where a path was followed."""
    diversity: Share = Share()
    """Planner: see `diversity`; the mean over problems with at least two paths."""
    success: Share = Share()
    """Executor: right attempts, of all paths that were followed."""
    mended: int = 0
    """Executor: attempts that refinement made right."""
    spoilt: int = 0
    """Executor: attempts that refinement made wrong."""
    fixed: int = 0
    """Reflector: problems where the plurality of the attempts was wrong and the consolidated answer is right."""
    broken: int = 0
    """Reflector: problems where the plurality was right and the consolidated answer is wrong."""
    disagreements: int = 0
    """Reflector: problems that it was asked about."""
    selection: Share = Share()
    """Verifier: problems where it chose a right answer, of those where there was one."""

    def __add__(self, other: StageMeasures) -> StageMeasures:
        """Both together."""
        return StageMeasures(
            **{name: getattr(self, name) + getattr(other, name) for name in StageMeasures.model_fields}
        )


def measures(records: Iterable[Record]) -> StageMeasures:
    """The stage measures of a run."""
    total = StageMeasures()
    for record in records:
        total += measures_of(record)
    return total


def measures_of(record: Record) -> StageMeasures:
    """The stage measures of one problem; what a stage had no part in counts for nothing."""
    followed = [attempt for attempt in record.attempts if attempt.origin == "path"]
    reflections = [attempt for attempt in record.attempts if attempt.origin == "reflection"]
    before, after = plurality_right(record), any(attempt.correct for attempt in reflections)
    turned = [(attempt.earlier[0].correct, attempt.correct) for attempt in followed if attempt.earlier]
    any_right = any(attempt.correct for attempt in record.attempts)
    planned = record.plan.paths
    return StageMeasures(
        coverage=_share([any(attempt.correct for attempt in followed)] if followed else []),
        diversity=Share(hits=diversity(planned), of=1) if len(planned) > 1 else Share(),
        success=_share([attempt.correct for attempt in followed]),
        mended=turned.count((False, True)),
        spoilt=turned.count((True, False)),
        fixed=int(bool(reflections) and after and not before),
        broken=int(bool(reflections) and before and not after),
        disagreements=int(bool(reflections)),
        selection=_share([record.correct] if any_right else []),
    )


def diversity(paths: Sequence[Path]) -> float:
    """How much paths differ, from 0 (all the same) to 1: the mean over pairs of the share of words not in common.

    Paths in different modes are as different as can be.
    """
    pairs = [1.0 - likeness(a, b) for a, b in combinations(paths, 2)]
    return sum(pairs) / len(pairs) if pairs else 0.0


def plurality_right(record: Record) -> bool:
    """Whether the most frequent answer of the paths, the first among equals, is right: what reflection began with."""
    members = [
        [index for index in each if record.attempts[index].origin == "path"]
        for each in record.classes  # an attempt without an answer is in none of them
    ]
    voted = max((each for each in members if each), key=lambda each: (len(each), -each[0]), default=None)
    return voted is not None and record.attempts[voted[0]].correct


def every_graded(record: Record) -> list[GradedAttempt]:
    """All attempts of a record, those that were refined away included."""
    return [each for attempt in record.attempts for each in (*attempt.earlier, attempt)]


def _share(hits: Sequence[bool]) -> Share:
    return Share(hits=float(sum(hits)), of=len(hits))
