"""The planner: distinct paths from whatever the Engine writes, default paths otherwise."""

from __future__ import annotations

import json
from typing import Any

from coda.program.planner import distinct, read_paths
from coda.program.settings import Settings
from coda.program.stage import Asked
from coda.program.types import Path, Problem

PROBLEM = Problem(text="What is 6 * 7?")
SETTINGS = Settings(adapter="json", reflect=False, paths=("reason", "code"), quorum=1, max_paths=2)


def plan_of(pipeline: Any, settings: Settings, reply: str) -> Any:
    return pipeline(settings, plan=reply, reason="Answer: 42").solve(PROBLEM).plan


def paths(*items: tuple[str, str]) -> str:
    return json.dumps({"difficulty": "easy", "paths": [{"mode": mode, "approach": text} for mode, text in items]})


def test_the_engine_s_paths_are_followed_in_its_order(pipeline: Any) -> None:
    plan = plan_of(pipeline, SETTINGS, paths(("reason", "Use tens."), ("reason", "Add six sevens.")))
    assert plan.source == "engine"
    assert plan.difficulty == "easy"
    assert [path.approach for path in plan.paths] == ["Use tens.", "Add six sevens."]


def test_paths_that_say_the_same_are_one_path(pipeline: Any) -> None:
    plan = plan_of(pipeline, SETTINGS, paths(("reason", "Use tens."), ("reason", "use TENS")))
    assert [path.approach for path in plan.paths] == ["Use tens."]


def test_a_plan_too_short_for_agreement_is_filled_with_default_paths(pipeline: Any) -> None:
    settings = SETTINGS.model_copy(update={"quorum": 2})
    plan = plan_of(pipeline, settings, paths(("reason", "Use tens.")))
    assert [(path.mode, path.approach) for path in plan.paths] == [("reason", "Use tens."), ("reason", "")]


def test_an_unreadable_plan_becomes_the_default_paths(pipeline: Any) -> None:
    plan = plan_of(pipeline, SETTINGS, "I cannot plan.")
    assert plan.source == "default"
    assert [path.mode for path in plan.paths] == ["reason", "code"]


def test_an_engine_that_fails_to_plan_does_not_fail_the_problem(pipeline: Any) -> None:
    program = pipeline(SETTINGS.model_copy(update={"paths": ("reason",)}), plan="", reason="Answer: 42")
    assert program.solve(PROBLEM).answer == "42"


def test_paths_are_read_from_plain_lines() -> None:
    text = "Here is how:\n1. reason: multiply by hand\n2. **code**: loop over all x\nGood luck."
    assert read_paths(Asked("unparsable", text=text)) == [
        Path(mode="reason", approach="multiply by hand"),
        Path(mode="code", approach="loop over all x"),
    ]


def test_distinct_keeps_the_same_approach_in_another_mode() -> None:
    kept = distinct([Path(mode="reason", approach="count"), Path(mode="code", approach="count")])
    assert [path.mode for path in kept] == ["reason", "code"]
