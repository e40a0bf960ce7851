"""A knockout among distinct answers: one comparison fewer than there are answers, and few of them in sequence."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from coda.program.concurrency import gather_ordered
from coda.program.standings import Standing

Preference = Literal["first", "second"] | None
"""``None`` where the two orders of showing a pair contradict each other."""

Better = Callable[[Standing, Standing], Awaitable[Preference]]


@dataclass(frozen=True)
class Knockout:
    """How it ended.

    Attributes:
        winner: The answer that was not beaten.
        decided: Whether its last comparison was decided by the judge, and not by its standing.
        won: Comparisons that each answer won, by its champion.
    """

    winner: Standing
    decided: bool
    won: dict[int, int]

    def score(self, contender: Standing) -> float:
        """How far an answer came, from 0 to 1 for the winner; 0 where it did not take part."""
        most = max(self.won.values())
        return (self.won[contender.champion] + 1) / (most + 1) if contender.champion in self.won else 0.0


async def knockout(contenders: Sequence[Standing], better: Better) -> Knockout:
    """Pair the best with the worst, all pairs of a round at once, until one is left.

    Args:
        contenders: Distinct answers, best standing first; at least one.
        better: Compares two. Where it cannot tell, the one with the better standing goes on.
    """
    left, decided = list(contenders), True
    won = {each.champion: 0 for each in contenders}
    while len(left) > 1:
        half = len(left) // 2
        pairs = list(zip(left[:half], reversed(left[-half:]), strict=True))
        preferences = await gather_ordered(better(one, two) for one, two in pairs)
        through = []
        for (one, two), preference in zip(pairs, preferences, strict=True):
            through.append(two if preference == "second" else one)
            won[through[-1].champion] += 1
        decided = preferences[0] is not None if len(pairs) == 1 else decided
        left = [*through, *left[half : len(left) - half]]
        left.sort(key=contenders.index)
    return Knockout(left[0], decided, won)
