"""The planner: how hard is the problem, and which distinct paths lead to its answer?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import dspy

from coda.program.presentation import statement
from coda.program.settings import Settings
from coda.program.stage import Asked, Stage
from coda.program.types import Mode, Path, Plan, Problem
from coda.signatures.planning import DevisePaths, PlannedPath

_LINE = re.compile(r"^\W*(?:path\s*)?\d*\W*\b(reason|code)\b\W*(.*)$", re.IGNORECASE | re.MULTILINE)


class Planner(Stage):
    """Devises several distinct paths. A plan that cannot be used is replaced by the default paths, never by failure."""

    stage = "planner"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.planner_stage)
        self.settings = settings
        self.propose = dspy.Predict(DevisePaths)

    async def aforward(self, problem: Problem, modes: tuple[Mode, ...]) -> Plan:
        """Plan.

        Args:
            problem: What to plan for.
            modes: The modes that can be followed here, by default preference; without a sandbox there is no ``code``.
        """
        if not self.settings.plan:
            return self.default_plan(modes)
        asked = await self.ask(self.propose, problem=statement(problem), number_of_paths=self.settings.max_paths)
        paths = distinct(path for path in read_paths(asked) if path.mode in modes)
        if not paths:
            return self.default_plan(modes)
        difficulty = getattr(asked.fields, "difficulty", None)
        chosen = paths[: self.settings.max_paths]
        return Plan(paths=(*chosen, *self._padding(chosen, modes)), difficulty=difficulty, source="engine")

    def default_plan(self, modes: tuple[Mode, ...]) -> Plan:
        """The policy's own paths."""
        return Plan(paths=tuple(Path(mode=mode) for mode in self.default_modes(modes)))

    def default_modes(self, modes: tuple[Mode, ...]) -> tuple[Mode, ...]:
        """The default paths' modes among those that can be followed; the first possible mode where none is left."""
        possible = tuple(mode for mode in self.settings.paths if mode in modes)[: self.settings.max_paths]
        return possible or (modes[0],) * min(len(self.settings.paths), self.settings.max_paths)

    def _padding(self, chosen: list[Path], modes: tuple[Mode, ...]) -> list[Path]:
        """Default paths that fill a plan too short for any two attempts to agree."""
        missing = max(0, self.settings.quorum - len(chosen))
        return [Path(mode=mode) for mode in self.default_modes(modes)[:missing]]


def read_paths(asked: Asked) -> list[Path]:
    """The paths in a plan, from its fields or, where the format was broken, from lines such as "2. code: try all x"."""
    planned = getattr(asked.fields, "paths", None) or []
    paths = [
        Path(
            mode=path.mode,
            approach=path.approach.strip(),
            steps=tuple(path.steps),
            confidence=min(1.0, max(0.0, path.confidence)),
        )
        for path in planned
        if isinstance(path, PlannedPath)
    ]
    if paths:
        return paths
    found = [(match[1].lower(), match[2].strip(" \t*:-")) for match in _LINE.finditer(asked.text)]
    return [Path(mode="code" if mode == "code" else "reason", approach=approach) for mode, approach in found]


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Drop paths whose mode and approach were already seen, compared word by word."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    kept = []
    for path in paths:
        key = (path.mode, tuple(re.findall(r"\w+", path.approach.lower())))
        if key not in seen:
            seen.add(key)
            kept.append(path)
    return kept
