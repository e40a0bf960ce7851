"""The planner: how hard is the problem, and which distinct paths lead to its answer?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import dspy

from coda.program.concurrency import gather_ordered
from coda.program.presentation import statement
from coda.program.settings import Settings
from coda.program.stage import Asked, Stage
from coda.program.types import Mode, Path, Plan, Problem, Step
from coda.signatures.planning import DevisePaths, PlannedPath, PlannedStep

ALIKE = 0.7
"""Paths of one mode that share this part of their words (Jaccard index) are the same idea."""

_LINE = re.compile(r"^\W*(?:path\s*)?\d*\W*\b(reason|code|decompose)\b\W*(.*)$", re.IGNORECASE | re.MULTILINE)


class Planner(Stage):
    """Devises several distinct paths. A plan that cannot be used is replaced by the default paths, never by failure."""

    stage = "planner"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.planner_stage)
        self.settings = settings
        self.propose = dspy.Predict(DevisePaths)

    async def aforward(self, problem: Problem, modes: tuple[Mode, ...], followed: int = 0) -> Plan:
        """Plan a round.

        Args:
            problem: What to plan for.
            modes: The modes that can be followed here; without a sandbox there is no ``code``.
            followed: How many of the round's default paths were followed already, without a plan.
        """
        settings = self.settings.at(problem.task)
        wanted = settings.max_paths - followed
        if wanted < 1 or not settings.plan:
            return self.default_plan(problem, modes, followed)
        asked = await self._ask(problem, wanted)
        order = self.default_modes(problem, modes)[followed:]
        paths = distinct(path for each in asked for path in read_paths(each) if path.mode in modes)
        if not paths:
            return self.default_plan(problem, modes, followed)
        chosen = in_order_of_modes(paths, order)[:wanted]
        missing = max(0, settings.quorum - followed - len(chosen))
        padding = [Path(mode=mode) for mode in (order[len(chosen) :] or order)[:missing]]
        found = [getattr(each.fields, "difficulty", None) for each in asked]
        difficulty = next((each for each in found if each), None)
        return Plan(paths=(*chosen, *padding), difficulty=difficulty, source="engine")

    async def _ask(self, problem: Problem, wanted: int) -> list[Asked]:
        """Ask for so many paths: in one call, or each in a call of its own."""
        text = statement(problem)
        if self.settings.plan_style == "together":
            return [await self.ask(self.propose, problem=text, number_of_paths=wanted)]
        return await gather_ordered(
            self.ask(self.propose, turn=turn, problem=text, number_of_paths=1) for turn in range(wanted)
        )

    def default_plan(self, problem: Problem, modes: tuple[Mode, ...], followed: int = 0) -> Plan:
        """The default paths, less those that were followed already."""
        return Plan(paths=tuple(Path(mode=mode) for mode in self.default_modes(problem, modes)[followed:]))

    def default_modes(self, problem: Problem, modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
        """The default paths' modes among those that can be followed; the first possible mode where none is left."""
        settings = self.settings.at(problem.task)
        possible = tuple(mode for mode in settings.paths if mode in modes)[: settings.max_paths]
        return possible or (modes[0],) * min(len(settings.paths), settings.max_paths)


def read_paths(asked: Asked) -> list[Path]:
    """The paths in a plan, from its fields or, where the format was broken, from lines such as "2. code: try all x"."""
    planned = getattr(asked.fields, "paths", None) or []
    paths = [_path(path) for path in planned if isinstance(path, PlannedPath)]
    if paths:
        return paths
    found = [(match[1].lower(), match[2].strip(" \t*:-")) for match in _LINE.finditer(asked.text)]
    modes: dict[str, Mode] = {"reason": "reason", "code": "code", "decompose": "decompose"}
    return [Path(mode=modes[mode], approach=approach) for mode, approach in found]


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Merge paths that are the same idea in other words; the first stays, with the greatest confidence."""
    kept: list[Path] = []
    for path in paths:
        place = next((i for i, other in enumerate(kept) if same_idea(path, other)), None)
        if place is None:
            kept.append(path)
        elif path.confidence > kept[place].confidence:
            kept[place] = kept[place].model_copy(update={"confidence": path.confidence})
    return kept


def same_idea(one: Path, other: Path) -> bool:
    """Whether two paths have one mode and nearly the same words."""
    return likeness(one, other) >= ALIKE


def likeness(one: Path, other: Path) -> float:
    """The share of two paths' words that they have in common (Jaccard index); 0 for paths in different modes."""
    a, b = _words(one), _words(other)
    if one.mode != other.mode:
        return 0.0
    return len(a & b) / len(a | b) if a | b else 1.0


def in_order_of_modes(paths: Sequence[Path], modes: Sequence[Mode]) -> list[Path]:
    """Order paths by what is known, then by what is claimed.

    ``modes`` is what calibration found, likeliest first: each place takes the most confident path of its mode, and the
    most confident of all where none of its mode is left. So the Engine's confidence orders paths within a mode only.
    """
    left = sorted(paths, key=lambda path: -path.confidence)
    ordered = []
    for mode in modes[: len(left)]:
        place = next((i for i, path in enumerate(left) if path.mode == mode), 0)
        ordered.append(left.pop(place))
    return [*ordered, *left]


def _path(planned: PlannedPath) -> Path:
    steps = tuple(_step(step) for step in planned.steps if step.action.strip())
    least = min((step.confidence for step in steps), default=0.5)
    confidence = least if planned.confidence is None else _chance(planned.confidence)
    return Path(mode=planned.mode, approach=planned.approach.strip(), steps=steps, confidence=confidence)


def _step(planned: PlannedStep) -> Step:
    return Step(action=planned.action.strip(), confidence=_chance(planned.confidence))


def _chance(value: float) -> float:
    return min(1.0, max(0.0, value))


def _words(path: Path) -> set[str]:
    return set(re.findall(r"\w+", " ".join((path.approach, *(step.action for step in path.steps))).lower()))
