"""The planner: distinct paths from whatever the Engine writes, default paths otherwise."""

from __future__ import annotations

import json
from typing import Any

import dspy

from coda.program.planner import distinct, in_order_of_modes, read_paths
from coda.program.settings import Settings
from coda.program.stage import Asked
from coda.program.types import Path, Problem, Step
from coda.signatures.planning import PlannedPath, PlannedStep

PROBLEM = Problem(text="What is 6 * 7?")
SETTINGS = Settings(
    adapter="json", straight=False, reflect=False, paths=("reason", "code"), quorum=1, max_paths=2, max_rounds=1
)


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
    program = pipeline(settings, plan=paths(("reason", "Use tens.")), reason="Answer: 42", code="print(42)")
    plan = program.solve(PROBLEM).plan
    assert [(path.mode, path.approach) for path in plan.paths] == [("reason", "Use tens."), ("code", "")]


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


def test_a_near_duplicate_is_merged_and_the_greater_confidence_kept() -> None:
    first = Path(mode="code", approach="loop over all x and count the hits", confidence=0.4)
    again = Path(mode="code", approach="loop over all x, and count hits", confidence=0.9)
    assert distinct([first, again]) == [first.model_copy(update={"confidence": 0.9})]


def test_paths_with_other_steps_are_other_paths() -> None:
    one = Path(mode="reason", approach="by parts", steps=(Step(action="find the perimeter of the square"),))
    two = Path(mode="reason", approach="by parts", steps=(Step(action="bound the area from above and below"),))
    assert distinct([one, two]) == [one, two]


def test_known_modes_come_before_claimed_confidence() -> None:
    paths = [
        Path(mode="reason", approach="a", confidence=0.99),
        Path(mode="code", approach="b", confidence=0.2),
        Path(mode="code", approach="c", confidence=0.6),
    ]
    assert [path.approach for path in in_order_of_modes(paths, ("code", "reason", "code"))] == ["c", "a", "b"]
    assert [path.approach for path in in_order_of_modes(paths, ("decompose",))] == ["a", "c", "b"]


def test_a_path_is_as_sure_as_its_least_certain_step_unless_it_says_otherwise() -> None:
    steps = [PlannedStep(action="bound it", confidence=0.9), PlannedStep(action="guess", confidence=0.3)]
    silent = PlannedPath(mode="reason", approach="x", steps=steps)
    outspoken = silent.model_copy(update={"confidence": 7.0})
    found = read_paths(Asked("ok", fields=dspy.Prediction(paths=[silent, outspoken])))
    assert [path.confidence for path in found] == [0.3, 1.0]
    assert [step.confidence for step in found[0].steps] == [0.9, 0.3]


def test_steps_may_be_plain_texts() -> None:
    path = PlannedPath.model_validate({"mode": "decompose", "approach": "x", "steps": ["first", "then"]})
    assert [step.action for step in path.steps] == ["first", "then"]


def test_paths_planned_apart_are_asked_for_one_by_one_and_merged(pipeline: Any) -> None:
    settings = SETTINGS.model_copy(update={"plan_style": "apart", "max_paths": 3, "quorum": 2})
    replies = [paths(("reason", text)) for text in ("Use tens.", "use tens", "Count on fingers.")]
    plan = pipeline(settings, plan=replies, reason="Answer: 42").solve(PROBLEM).plan
    assert pipeline.asked.count("plan") == 3
    assert sorted(path.approach.lower().strip(".") for path in plan.paths) == ["count on fingers", "use tens"]


def test_agreement_of_the_straight_paths_saves_the_plan(pipeline: Any) -> None:
    settings = SETTINGS.model_copy(update={"straight": True, "paths": ("reason",) * 4, "quorum": 2, "max_paths": 4})
    solution = pipeline(settings, reason="Answer: 42").solve(PROBLEM)
    assert pipeline.asked == ["reason", "reason"]
    assert solution.early_exit
    assert solution.plan.source == "default"


def test_disagreement_of_the_straight_paths_buys_a_plan_for_the_others(pipeline: Any) -> None:
    settings = SETTINGS.model_copy(update={"straight": True, "paths": ("reason",) * 4, "quorum": 2, "max_paths": 4})
    plan, replies = paths(("reason", "Use tens."), ("reason", "Add.")), ["Answer: 1", "Answer: 2", "42", "42"]
    program = pipeline(settings, plan=plan, reason=replies)
    solution = program.solve(PROBLEM)
    assert pipeline.asked == ["reason", "reason", "plan", "reason", "reason"]
    assert [path.approach for path in solution.plan.paths] == ["", "", "Use tens.", "Add."]
    assert solution.answer == "42"
