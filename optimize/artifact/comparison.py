"""What an artefact holds, and in what two of them differ; for ``coda show`` and ``coda diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import JsonValue

from coda.optimize.artifact.documents import Gain, Manifest, Policy, Score
from coda.optimize.artifact.folder import load, read_manifest, read_policy
from coda.optimize.artifact.state import state_of
from coda.optimize.identity import differing
from coda.optimize.prompts import prompts_of
from coda.program.conductor import Coda
from coda.program.settings import Settings
from coda.program.types import Frozen

PlainDemos = tuple[dict[str, JsonValue], ...]

Change = tuple[Any, Any]
"""A value in the first artefact and in the second; `coda.optimize.identity.ABSENT` where there is none."""


class PredictorDescription(Frozen):
    """A predictor of a compiled program."""

    name: str
    instructions: str
    tuned: bool
    """Whether the instructions are others than the signature's own."""
    demos: int
    characters: int
    """Length of the prompt without its inputs."""


class Description(Frozen):
    """A compiled program."""

    folder: str
    manifest: Manifest
    policy: Policy
    settings: dict[str, Any]
    """Settings that are not the default, by dotted name."""
    predictors: tuple[PredictorDescription, ...]
    caveats: tuple[str, ...]
    """What differs here from where the program was compiled."""


class DemoChange(Frozen):
    """Demos of a predictor that only one of the artefacts has."""

    only_first: PlainDemos
    only_second: PlainDemos
    shared: int
    reordered: bool
    """Whether both have the same demos in another order."""


class Difference(Frozen):
    """In what two compiled programs differ. Empty fields: in nothing."""

    instructions: dict[str, tuple[str, str]]
    """By predictor."""
    fields: dict[str, Change]
    """Descriptions of fields, by dotted name."""
    demos: dict[str, DemoChange]
    """By predictor."""
    settings: dict[str, Change]
    """By dotted name."""
    policy: dict[str, Change]
    origin: dict[str, Change]
    """Model, profile, benchmark, versions, …, by dotted name of the manifest."""
    scores: tuple[tuple[Score | None, Score | None], ...]
    """The scores of both, matched by program and split."""
    gains: tuple[tuple[Gain, ...], tuple[Gain, ...]]

    @property
    def same_program(self) -> bool:
        """Whether both send the same requests."""
        return not (self.instructions or self.fields or self.demos or self.settings)


def describe(folder: Path) -> Description:
    """Describe an artefact.

    Raises:
        ArtifactError: It cannot be loaded.
    """
    program, manifest = load(folder), read_manifest(folder)
    own = {name: each.signature.instructions for name, each in Coda(program.settings).named_predictors()}
    lengths = {each.name: each.characters for each in prompts_of(program)}
    changed = differing(Settings().model_dump(mode="json"), program.settings.model_dump(mode="json"))
    return Description(
        folder=str(folder),
        manifest=manifest,
        policy=read_policy(folder),
        settings={name: value for name, (_, value) in changed.items()},
        predictors=tuple(
            PredictorDescription(
                name=name,
                instructions=each.signature.instructions,
                tuned=each.signature.instructions != own[name],
                demos=len(each.demos),
                characters=lengths[name],
            )
            for name, each in program.named_predictors()
        ),
        caveats=tuple(manifest.caveats()),
    )


def difference(first: Path, second: Path) -> Difference:
    """Compare two artefacts.

    Raises:
        ArtifactError: One of them cannot be loaded.
    """
    states = [state_of(load(folder)) for folder in (first, second)]
    manifests = [read_manifest(folder) for folder in (first, second)]
    before, after = (state.predictors for state in states)
    demos = {name: _demo_change(before[name].demos, after[name].demos) for name in before}
    return Difference(
        instructions={
            name: (before[name].instructions, after[name].instructions)
            for name in before
            if before[name].instructions != after[name].instructions
        },
        fields=differing(*({name: each.fields for name, each in state.predictors.items()} for state in states)),
        demos={name: change for name, change in demos.items() if change is not None},
        settings=differing(*(state.settings.model_dump(mode="json") for state in states)),
        policy=differing(*(_learned(read_policy(folder)) for folder in (first, second))),
        origin=differing(*(_origin(manifest) for manifest in manifests)),
        scores=_matched(manifests[0].scores, manifests[1].scores),
        gains=(manifests[0].gains, manifests[1].gains),
    )


def _origin(manifest: Manifest) -> dict[str, Any]:
    return manifest.model_dump(mode="json", exclude={"kind", "scores", "gains", "files", "cost", "created"})


def _learned(policy: Policy) -> dict[str, Any]:
    """A policy with a name for each count."""
    counts = {f"{each.adapter}.{each.task}.{each.mode}": f"{each.successes}/{each.trials}" for each in policy.counts}
    return {**policy.model_dump(mode="json"), "counts": counts}


def _demo_change(first: PlainDemos, second: PlainDemos) -> DemoChange | None:
    if first == second:
        return None
    only_first, only_second = _without(first, second), _without(second, first)
    return DemoChange(
        only_first=only_first,
        only_second=only_second,
        shared=len(first) - len(only_first),
        reordered=not only_first and not only_second,
    )


def _without(demos: PlainDemos, others: PlainDemos) -> PlainDemos:
    """The demos that are not among the others, each of which stands for one."""
    left = list(others)
    kept = []
    for demo in demos:
        if demo in left:
            left.remove(demo)
        else:
            kept.append(demo)
    return tuple(kept)


def _matched(first: tuple[Score, ...], second: tuple[Score, ...]) -> tuple[tuple[Score | None, Score | None], ...]:
    one, other = ({(each.program, each.split): each for each in scores} for scores in (first, second))
    return tuple((one.get(key), other.get(key)) for key in dict.fromkeys([*one, *other]))
