"""How an artefact of an older schema is brought forward, one version at a time.

A step takes the documents as they were written and returns them as the next version writes them. It works on plain
JSON, so that it stays right when today's models change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coda.optimize.artifact.state import state_of
from coda.program.conductor import Coda

Documents = dict[str, dict[str, Any]]
"""The contents of ``manifest.json``, ``program.json`` and ``policy.json``, by file name."""

_AS_BEFORE = {
    "straight": False,
    "plan_style": "together",
    "wave": 60,
    "completions": 1,
    "max_rounds": 1,
    "written_tests": False,
}
"""The settings that version 2 added, at what version 1 did."""

_PLANNER = ("8052214c5428", "fd3d1a89eff2")
"""The hash of the planner's fields before steps had a confidence, and after."""


def to_version_2(documents: Documents) -> Documents:
    """Version 2 has more stages and more settings, and a planned step has a confidence.

    The program goes on working as it did. Predictors that it did not have are as written; the settings that use them
    are off.
    """
    program = documents["program.json"]
    written = state_of(Coda()).model_dump(mode="json")["predictors"]
    predictors = {**written, **program["predictors"]}
    planner = predictors["planner.propose"]
    if planner["signature"] == _PLANNER[0]:
        demos = [_with_steps(demo) for demo in planner["demos"]]
        predictors["planner.propose"] = {**planner, "signature": _PLANNER[1], "demos": demos}
    return {
        **documents,
        "program.json": {**program, "settings": {**_AS_BEFORE, **program["settings"]}, "predictors": predictors},
        "manifest.json": {**documents["manifest.json"], "schema_version": 2},
    }


def _with_steps(demo: dict[str, Any]) -> dict[str, Any]:
    """A planner's demo whose steps have a confidence."""
    if not isinstance(demo.get("paths"), list):
        return demo
    return {**demo, "paths": [_path(path) for path in demo["paths"]]}


def _path(path: Any) -> Any:
    if not isinstance(path, dict):
        return path
    steps = [{"action": step, "confidence": 0.5} if isinstance(step, str) else step for step in path.get("steps", [])]
    return {**path, "steps": steps}


MIGRATIONS: dict[int, Callable[[Documents], Documents]] = {1: to_version_2}
"""For each schema version that has a successor: how to bring an artefact one version further."""
