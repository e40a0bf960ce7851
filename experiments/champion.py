"""Which of a model's pipelines is the champion: the alias moves only when a paired comparison proves a gain."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from coda.errors import RunError
from coda.optimize.artifact import Gain, Manifest
from coda.optimize.identity import identify
from coda.optimize.records import read_results
from coda.optimize.rundir import read_config
from coda.optimize.stats import compare_pairs, proven_gain
from coda.program.conductor import Coda


class Scores(BaseModel):
    """What a pipeline scored on each problem; kept with every registered version, for comparisons to come."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str
    split: str
    model: str
    scores: dict[str, float]
    """By the problem's id and the hash of its content."""


@dataclass(frozen=True)
class Ruling:
    """Whether a pipeline becomes the champion.

    Attributes:
        champion: Whether it does, or is it already.
        why: A sentence.
    """

    champion: bool
    why: str


def scores_of(run_dir: Path, program: Coda) -> Scores:
    """The scores that a pipeline reached in an evaluation.

    Args:
        run_dir: The evaluation's run directory.
        program: The pipeline; the directory must be one of its own.

    Raises:
        RunError: There are no results, or they are another pipeline's.
    """
    held = read_config(run_dir)["identity"]
    measured, benchmark = held.get("program", {}), held.get("benchmark", {})
    own = json.loads(json.dumps(identify(program)))
    if any(measured.get(part) != own[part] for part in ("settings", "predictors")):
        raise RunError(
            f"{run_dir} holds results of another pipeline. Measure this one: coda eval … --program DIR --run-dir …"
        )
    collected: dict[str, list[float]] = {}
    for record in read_results(run_dir):
        collected.setdefault(f"{record.id} {record.problem.key}", []).append(float(record.correct))
    return Scores(
        benchmark=benchmark["name"],
        split=benchmark["split"],
        model=measured["model"],
        scores={key: sum(values) / len(values) for key, values in collected.items()},
    )


def first_champion(manifest: Manifest) -> Ruling:
    """Rule where there is no champion yet: the pipeline must be better than the uncompiled one."""
    against = [gain for gain in manifest.gains if gain.against == "baseline"]
    gain = next((gain for gain in against if gain.split == "test"), against[0] if against else None)
    if gain is None:
        return Ruling(False, "The manifest holds no comparison with the uncompiled pipeline.")
    better = "better than the uncompiled pipeline"
    return _ruling(gain, f"proven {better}", f"not proven {better}")


def challenge(challenger: Scores | None, champion: Scores | None, version: int) -> Ruling:
    """Rule between a pipeline and the champion, on the problems that both were measured on.

    Args:
        challenger: The pipeline's scores.
        champion: The champion's.
        version: The champion's number.
    """
    if challenger is None:
        return Ruling(False, f"To challenge version {version}, give the pipeline's results: --results RUN_DIR.")
    if champion is None:
        return Ruling(
            False, f"Version {version} was registered without results to compare with; --force moves the alias."
        )
    if (challenger.split, challenger.model) != (champion.split, champion.model):
        return Ruling(
            False,
            f"Version {version} was measured with {champion.model} on {champion.split}, this pipeline with "
            f"{challenger.model} on {challenger.split}.",
        )
    shared = sorted(challenger.scores.keys() & champion.scores.keys())
    if not shared:
        return Ruling(False, f"This pipeline and version {version} have no measured problem in common.")
    paired = compare_pairs([champion.scores[key] for key in shared], [challenger.scores[key] for key in shared])
    gain = Gain(
        against=f"version {version}",
        split=challenger.split,
        n=len(shared),
        difference=paired.difference.mean,
        ci95=(paired.difference.low, paired.difference.high),
        gained=paired.gained,
        lost=paired.lost,
        p=paired.p,
    )
    return _ruling(gain, f"proven better than version {version}", f"not proven better than version {version}")


def _ruling(gain: Gain, proven: str, not_proven: str) -> Ruling:
    low, high = (100 * bound for bound in gain.ci95)
    champion = proven_gain(gain.ci95[0], gain.p)
    return Ruling(
        champion,
        f"It is {proven if champion else not_proven}: {100 * gain.difference:+.1f} points on {gain.n} {gain.split} "
        f"problems, 95 % interval {low:+.1f} to {high:+.1f}, p = {gain.p:.2g}.",
    )
