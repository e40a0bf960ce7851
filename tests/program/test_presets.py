"""Presets: plain settings in TOML, joined with what suits a family of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coda.errors import UsageError
from coda.program.engine.profiles import own_profiles
from coda.program.presets import ORDER, preset, preset_text
from coda.program.settings import Settings
from coda.program.types import Problem

PROBLEM = Problem(text="What is 6 * 7?")


def test_auto_is_the_default() -> None:
    assert preset("auto") == Settings()


def test_an_unknown_preset_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'lazy'.*fast, auto, thorough, published"):
        preset("lazy")


@pytest.mark.parametrize("name", ORDER)
def test_a_preset_s_file_is_a_settings_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(preset_text(name), "utf-8")
    assert Settings.from_toml(tmp_path / "mine.toml") == preset(name)


@pytest.mark.parametrize("name", ORDER)
def test_every_family_can_have_every_preset(name: str) -> None:
    for profile in own_profiles().values():
        joined = preset(name, profile.stages)
        assert len(joined.paths) == len(preset(name).paths)
        for key in profile.stages.keys() - {"paths", "executor_stage"}:
            assert getattr(joined, key) == getattr(profile.settings(), key)


def test_a_family_s_modes_fill_the_preset_s_paths() -> None:
    joined = preset("thorough", {"paths": ["code", "reason"]})
    assert joined.paths == ("code", "reason") * 4


def test_a_kind_of_task_can_have_settings_of_its_own() -> None:
    settings = Settings.parse({"quorum": 3, "tasks": {"code": {"quorum": 1, "reflect": False}}}, where="here")
    assert (settings.at("math").quorum, settings.at("math").reflect) == (3, True)
    assert (settings.at("code").quorum, settings.at("code").reflect) == (1, False)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"weights": {"vote": -1.0}}, "must not be negative"),
        ({"weights": {"vote": 0.0}}, "one must be above 0"),
        ({"weights": {"luck": 1.0}}, "weights.luck"),
        ({"judge_rates": [1.0, 0.5]}, "between 0 and 1"),
        ({"tasks": {"poetry": {}}}, "tasks.poetry"),
        ({"tasks": {"code": {"adapter": "json"}}}, "tasks.code.adapter"),
    ],
)
def test_a_bad_setting_is_named(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Settings.parse(values, where="Settings file mine.toml")


@pytest.mark.usefixtures("sandboxed")
def test_auto_passes_an_easy_problem_straight_through(pipeline: Any) -> None:
    settings = preset("auto", {"adapter": "plain"})
    solution = pipeline(settings, code="print(6 * 7)", reason="Answer: 42").solve(PROBLEM)
    assert sorted(pipeline.asked) == ["code", "reason"]
    assert (solution.answer, solution.early_exit, solution.rounds) == ("42", True, 1)


@pytest.mark.usefixtures("sandboxed")
def test_auto_spends_more_where_the_first_paths_disagree(pipeline: Any) -> None:
    settings = preset("auto", {"adapter": "plain"})
    program = pipeline(
        settings,
        code=["print(41)", "print(42)"],
        reason="Answer: 42",
        plan="code: multiply\nreason: add",
    )
    solution = program.solve(PROBLEM)
    assert sorted(pipeline.asked) == ["code", "code", "plan", "reason", "reason"]
    assert (solution.answer, solution.early_exit) == ("42", True)


@pytest.mark.usefixtures("sandboxed")
def test_fast_asks_once(pipeline: Any) -> None:
    assert pipeline(preset("fast", {"adapter": "plain"}), code="print(42)").solve(PROBLEM).answer == "42"
    assert pipeline.asked == ["code"]


@pytest.mark.usefixtures("sandboxed")
def test_thorough_follows_every_path_and_compares_every_answer(pipeline: Any) -> None:
    settings = preset("thorough", {"adapter": "plain", "plan": False, "max_rounds": 1})
    program = pipeline(
        settings,
        code="print(42)",
        reason="Answer: 41",
        decompose="What is it?",
        reconcile="Answer: 42",
        compare="first",
    )
    solution = program.solve(PROBLEM)
    assert len(solution.attempts) == 9
    assert solution.answer == "42"
    assert not solution.early_exit


@pytest.mark.usefixtures("sandboxed")
def test_published_makes_three_completions_with_a_review_each_and_rates_the_answers(pipeline: Any) -> None:
    plan = "code: a\nreason: b\ncode: c"
    program = pipeline(
        preset("published", {"adapter": "plain"}),
        plan=plan,
        code="print(42)",
        reason="Answer: 41",
        reconcile="Answer: 42",
        judge=lambda text: "right" if "Answer: 42" in text else "wrong",
    )
    solution = program.solve(PROBLEM)
    asked = pipeline.asked
    assert (asked.count("plan"), asked.count("reconcile"), asked.count("judge")) == (3, 3, 2)
    assert (asked.count("code"), asked.count("reason")) == (6, 3)
    assert len({str(body) for body in pipeline.engine.bodies if "Write a complete" in str(body)}) >= 1
    assert (solution.answer, len(solution.attempts)) == ("42", 12)
