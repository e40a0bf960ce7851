"""What ``coda show`` and ``coda diff`` have to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compiled import compiled

from coda.errors import ArtifactError
from coda.optimize.artifact import Manifest, ModeTrials, Policy, Score, describe, difference, save
from coda.optimize.prompts import prompts_of
from coda.program.conductor import Coda
from coda.program.settings import Settings


def score(program: str, split: str, accuracy: float) -> Score:
    return Score(program=program, split=split, n=60, accuracy=accuracy, ci95=(accuracy - 0.1, accuracy + 0.1))


def saved(folder: Path, program: Coda, *, policy: Policy | None = None, **origin: Any) -> Path:
    manifest = Manifest(**{"model": "openai/m", "profile": "generic", **origin})
    save(program, folder, manifest=manifest, policy=policy or Policy())
    return folder


def test_description_tells_what_was_tuned(tmp_path: Path) -> None:
    program = Coda(Settings(adapter="plain", quorum=3))
    program.executor.code.demos = compiled().executor.code.demos
    code = program.executor.code
    code.signature = code.signature.with_instructions("Write Python.")
    found = describe(saved(tmp_path / "a", program))
    by_name = {each.name: each for each in found.predictors}
    assert (by_name["executor.code"].tuned, by_name["executor.code"].demos) == (True, 2)
    assert (by_name["executor.reason"].tuned, by_name["executor.reason"].demos) == (False, 0)
    assert by_name["executor.code"].instructions == "Write Python."
    assert found.settings == {"adapter": "plain", "quorum": 3}
    assert found.caveats == ()


def test_description_counts_the_characters_of_a_prompt(tmp_path: Path) -> None:
    found = describe(saved(tmp_path / "a", Coda(Settings(adapter="plain"))))
    code = next(each for each in found.predictors if each.name == "executor.code")
    prompt = next(each for each in prompts_of(Coda(Settings(adapter="plain"))) if each.name == "executor.code")
    shown = prompt.fill(problem="", approach="x")
    assert code.characters == sum(len(each["content"]) for each in shown) - 1


def test_description_warns_of_another_version(tmp_path: Path) -> None:
    found = describe(saved(tmp_path / "a", compiled(), versions={"dspy": "2.6"}))
    assert found.caveats[0].startswith("It was compiled with dspy 2.6")


def test_same_program_twice_differs_in_nothing(tmp_path: Path) -> None:
    found = difference(saved(tmp_path / "a", compiled()), saved(tmp_path / "b", compiled()))
    assert found.same_program
    assert found.model_dump(exclude={"gains"}) == {
        "instructions": {},
        "fields": {},
        "demos": {},
        "settings": {},
        "policy": {},
        "origin": {},
        "scores": (),
    }


def test_instructions_fields_and_settings_are_shown_in_both_forms(tmp_path: Path) -> None:
    other = Coda(Settings(quorum=3))
    code = other.executor.code
    code.signature = code.signature.with_instructions("Write Python.").with_updated_fields("program", desc="Code.")
    found = difference(saved(tmp_path / "a", Coda(Settings())), saved(tmp_path / "b", other))
    assert not found.same_program
    assert list(found.instructions) == ["executor.code"]
    assert found.instructions["executor.code"][1] == "Write Python."
    assert found.fields == {"executor.code.program": ("Python source code", "Code.")}
    assert found.settings == {"quorum": (2, 3)}


def test_demos_are_matched_one_by_one(tmp_path: Path) -> None:
    one, other = Coda(Settings()), Coda(Settings())
    first, second = compiled().executor.code.demos
    one.executor.code.demos = [first, first, second]
    other.executor.code.demos = [second, first]
    change = difference(saved(tmp_path / "a", one), saved(tmp_path / "b", other)).demos["executor.code"]
    assert change.only_first == ({"problem": "What is 1 + 1?", "program": "print(1 + 1)"},)
    assert (change.only_second, change.shared, change.reordered) == ((), 2, False)


def test_demos_in_another_order_are_another_prompt(tmp_path: Path) -> None:
    one, other = compiled(), compiled()
    other.executor.code.demos = other.executor.code.demos[::-1]
    found = difference(saved(tmp_path / "a", one), saved(tmp_path / "b", other))
    assert found.demos["executor.code"].reordered
    assert not found.same_program


def test_scores_are_matched_by_program_and_split(tmp_path: Path) -> None:
    one = (score("baseline", "validation", 0.2), score("compiled", "test", 0.7))
    other = (score("compiled", "test", 0.8),)
    found = difference(saved(tmp_path / "a", compiled(), scores=one), saved(tmp_path / "b", compiled(), scores=other))
    assert found.scores == ((one[0], None), (one[1], other[0]))


def test_policy_and_origin_are_compared_by_name(tmp_path: Path) -> None:
    def learned(successes: int) -> Policy:
        count = ModeTrials(task="math", adapter="plain", mode="code", successes=successes, trials=6)
        return Policy(modes={"math": ("code", "reason")}, counts=(count,))

    first = saved(tmp_path / "a", compiled(), policy=learned(1), model="openai/one")
    second = saved(tmp_path / "b", compiled(), policy=learned(5), model="openai/two")
    found = difference(first, second)
    assert found.policy == {"counts.plain.math.code": ("1/6", "5/6")}
    assert found.origin == {"model": ("openai/one", "openai/two")}


def test_folder_that_is_no_artefact_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=f"{tmp_path} holds no compiled program"):
        difference(saved(tmp_path / "a", compiled()), tmp_path)
