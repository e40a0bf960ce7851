"""Calibration: which adapter style and which modes work for this Engine on this kind of problem?

Everything is counted, nothing is guessed: a cell of the grid (style × mode) is a number of successes in a number of
trials on training problems, and a Beta(1, 1) prior says how sure that makes us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coda.program.settings import AdapterStyle, Settings
from coda.program.types import Mode

STYLES: tuple[AdapterStyle, ...] = ("fields", "json", "plain")

HOPELESS = 0.05
"""A mode is dropped when the chance that it is the better one has fallen below this."""


@dataclass(frozen=True)
class Count:
    """Successes in trials.

    Attributes:
        successes: How many were right.
        trials: How many there were.
        readable: How many replies kept to the format.
    """

    successes: int = 0
    trials: int = 0
    readable: int = 0

    @property
    def mean(self) -> float:
        """The posterior mean under a uniform prior."""
        return (self.successes + 1) / (self.trials + 2)

    def __add__(self, other: Count) -> Count:
        """Both together."""
        return Count(self.successes + other.successes, self.trials + other.trials, self.readable + other.readable)


Cell = tuple[AdapterStyle, Mode]


def settings_for(base: Settings, cell: Cell) -> Settings:
    """Settings under which the program does one thing alone: follow a single path in the cell's mode and style."""
    style, mode = cell
    alone = {"plan": False, "paths": (mode,), "quorum": 1, "reflect": False, "max_refinements": 0, "max_rounds": 1}
    return base.model_copy(update={"adapter": style, **alone})


def best_style(grid: Mapping[Cell, Count]) -> AdapterStyle:
    """The style whose best mode succeeded most often.

    Ties go to the style with more readable replies, then to the order of the grid, whose first style is the profile's.
    """
    styles = list(dict.fromkeys(style for style, _ in grid))
    return max(styles, key=lambda style: (*_merit(grid, style), -styles.index(style)))


def choose(base: Settings, grid: Mapping[Cell, Count]) -> Settings:
    """The settings that the counts speak for.

    Modes are tried in the order of their success, and the profile's order among equals; one that has almost no chance
    of being the better one (`HOPELESS`) is not tried at all. As many paths as a plan may have are followed.
    """
    style = best_style(grid)
    modes = {mode: count for (each, mode), count in grid.items() if each == style}
    preferred = [*dict.fromkeys(base.paths), *modes]
    order = sorted(modes, key=lambda mode: (-modes[mode].mean, preferred.index(mode)))
    kept = [mode for mode in order if mode == order[0] or chance_better(modes[mode], modes[order[0]]) >= HOPELESS]
    paths = tuple(kept[i % len(kept)] for i in range(max(len(base.paths), base.max_paths)))
    return base.model_copy(update={"adapter": style, "paths": paths})


def chance_better(a: Count, b: Count, *, draws: int = 20_000) -> float:
    """The probability that ``a``'s true success rate exceeds ``b``'s, by seeded draws from both Beta posteriors."""
    import numpy as np

    rng = np.random.default_rng(0)
    first = rng.beta(a.successes + 1, a.trials - a.successes + 1, draws)
    second = rng.beta(b.successes + 1, b.trials - b.successes + 1, draws)
    return float(np.mean(first > second))


def cells(base: Settings, modes: Sequence[Mode]) -> list[Cell]:
    """The grid to be measured, the profile's own style first."""
    styles = sorted(STYLES, key=lambda style: style != base.adapter)
    return [(style, mode) for style in styles for mode in modes]


def probed(base: Settings, modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """Of the modes that are possible, those that the default paths follow; all where they follow none of them.

    Other modes are the planner's to choose, for problems that call for them; a path of them alone costs many requests.
    """
    return tuple(mode for mode in modes if mode in base.paths) or tuple(modes)


def _merit(grid: Mapping[Cell, Count], style: AdapterStyle) -> tuple[float, float]:
    mine = [count for (each, _), count in grid.items() if each == style]
    readable = sum(count.readable for count in mine) / max(1, sum(count.trials for count in mine))
    return max(count.mean for count in mine), readable
