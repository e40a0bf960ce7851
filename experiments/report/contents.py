"""What a report says, before it has a shape: figures of runs, comparisons, and how each run is repeated."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coda.errors import RunError
from coda.experiments.report.runs import Run, find_runs
from coda.optimize.compare import Comparison, compare
from coda.optimize.identity import flat
from coda.optimize.stats import smallest_visible_gain

STEPS = ("single", "oracle", "majority", "verified", "final")
"""The gap report's shares, in order."""


@dataclass(frozen=True)
class Effect:
    """A run against the first run on the same data, problem by problem.

    Attributes:
        run: The run.
        against: The run that it is compared with.
        comparison: Difference, interval, flips and p-value.
    """

    run: Run
    against: Run
    comparison: Comparison


@dataclass(frozen=True)
class Contents:
    """All of a report but the problems' stories.

    Attributes:
        title: What stands on top.
        runs: The runs, first the one that others are compared with.
        effects: The comparisons.
        remarks: What a reader must know: what was left out and why, what so few problems cannot show.
    """

    title: str
    runs: tuple[Run, ...]
    effects: tuple[Effect, ...]
    remarks: tuple[str, ...]

    @property
    def front(self) -> frozenset[str]:
        """Names of runs for which no other on the same data is as accurate with fewer tokens (the Pareto front)."""
        return frozenset(run.name for run in self.runs if not any(_dominates(other, run) for other in self.runs))


def gather(places: Sequence[Path], title: str | None = None) -> Contents:
    """Read runs and compare them.

    Args:
        places: Run directories, or folders with run directories in them. The first run is what others on the same
            benchmark and split are compared with.
        title: What stands on top; by default which benchmarks were measured.

    Raises:
        RunError: A place holds no run, or a run cannot be read.
    """
    runs, remarks = find_runs(places)
    effects, failures = _effects(runs)
    data = list(dict.fromkeys("/".join(run.data) for run in runs))
    smallest = {run.summary.problems for run in runs}
    remarks += tuple(failures) + tuple(_remarks(runs))
    remarks += tuple(
        f"{n} problems cannot show a difference of less than {smallest_visible_gain(n):.0%}." for n in sorted(smallest)
    )
    return Contents(title or f"CODA on {', '.join(data)}", runs, tuple(effects), remarks)


def _effects(runs: Sequence[Run]) -> tuple[list[Effect], list[str]]:
    """Each run against the first on the same data that it has problems in common with."""
    bases: dict[tuple[str, str], list[Run]] = {}
    effects, failures = [], []
    for run in runs:
        candidates = bases.setdefault(run.data, [])
        tried = [_against(base, run) for base in candidates]
        found = next((effect for effect in tried if isinstance(effect, Effect)), None)
        if found is not None:
            effects.append(found)
            continue
        candidates.append(run)
        failures += [f"{run.name} is not compared: {error}" for error in tried[:1]]
    return effects, failures


def _against(base: Run, run: Run) -> Effect | RunError:
    try:
        [comparison] = compare(base.path, run.path)
    except RunError as error:
        return error
    return Effect(run, base, comparison)


def _remarks(runs: Sequence[Run]) -> list[str]:
    found = []
    for run in runs:
        if run.summary.n < run.summary.planned:
            found.append(f"{run.name} has {run.summary.n} of {run.summary.planned} results.")
        if run.summary.stopped is not None:
            found.append(f"{run.name} stopped early ({run.summary.stopped.reason}): {run.summary.stopped.message}")
        failed = sum(run.summary.errors.values())
        if failed:
            found.append(f"{run.name}: {failed} of {run.summary.n} results ended in an error, which counts as wrong.")
    return found


def _dominates(other: Run, run: Run) -> bool:
    if other.data != run.data or other is run:
        return False
    one, two = (tokens_each(other), -other.summary.accuracy), (tokens_each(run), -run.summary.accuracy)
    return one[0] <= two[0] and one[1] <= two[1] and one != two


def tokens_each(run: Run) -> float:
    """Tokens for each result, on average."""
    return run.summary.tokens / run.summary.n


def outcomes(run: Run) -> dict[str, int]:
    """Where the run's results ended: right, or the place at which they were lost."""
    right = round(run.summary.accuracy * run.summary.n)
    lost = Counter(dict(run.summary.gap.lost) if run.summary.gap is not None else {})
    return {"right": right, **{str(loss): count for loss, count in lost.most_common()}}


def facts(run: Run) -> dict[str, str]:
    """What was measured, with what, on which data: names and values to be shown."""
    benchmark, program = _part(run.identity, "benchmark"), _part(run.identity, "program")
    settings = {f"settings.{name}": value for name, value in flat(_part(program, "settings")).items()}
    shown = {
        "run directory": run.path,
        "benchmark": f"{benchmark.get('name')}/{benchmark.get('split')}",
        "data digest": benchmark.get("digest"),
        "problems": _part(run.identity, "evaluation").get("problems"),
        "hash of problem ids": _part(run.identity, "evaluation").get("ids"),
        "samples": _part(run.identity, "evaluation").get("samples"),
        "program": program.get("name"),
        "model": program.get("model"),
        "profile": program.get("profile"),
        "effort": program.get("effort"),
        "seed": program.get("seed"),
        "sandbox": program.get("sandbox"),
        **{name: run.notes.get(key) for name, key in NOTES.items()},
        **settings,
        **{f"prompt {name}": value for name, value in _part(program, "predictors").items()},
    }
    return {name: _text(value) for name, value in shown.items() if value not in (None, "", {}, [])}


NOTES = {"began": "started", "CODA": "coda", "git revision": "git", "Engine's address": "api_base"}


def command(run: Run) -> str:
    """The command that measures the same again. A program that was compiled needs ``--program`` besides."""
    program, evaluation = _part(run.identity, "program"), _part(run.identity, "evaluation")
    name, _, samples = str(program.get("name", "Coda")).partition("@")
    words = ["coda", "eval", run.summary.benchmark, "--split", run.summary.split]
    words += ["--limit", str(evaluation.get("problems", run.summary.problems))]
    words += ["--samples", str(evaluation["samples"])] if evaluation.get("samples", 1) != 1 else []
    words += ["--model", run.summary.model] if run.summary.model else []
    words += ["--api-base", str(run.notes["api_base"])] if run.notes.get("api_base") else []
    words += ["--seed", str(program["seed"])] if program.get("seed") else []
    words += ["--baseline", name] if name in {"single", "self-consistency", "best-of-n"} else []
    words += ["--baseline-samples", samples] if samples else []
    return shlex.join([*words, "--settings", "settings.toml", "--run-dir", str(run.path)])


def settings_toml(run: Run) -> str:
    """The settings as the file that ``--settings`` reads; empty where the run has none."""
    settings = _part(_part(run.identity, "program"), "settings")
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping) and value is not None}
    lines = [f"{name} = {_toml(value)}" for name, value in plain.items()]
    for name, value in settings.items():
        inner = {key: part for key, part in value.items() if part is not None} if isinstance(value, Mapping) else {}
        if inner:
            lines += ["", f"[{name}]", *(f"{key} = {_toml(part)}" for key, part in inner.items())]
    return "\n".join(lines) + "\n" if lines else ""


def _toml(value: Any) -> str:
    """A value without tables in it, as TOML; JSON's strings, numbers and lists of them are TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items() if part is not None) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
