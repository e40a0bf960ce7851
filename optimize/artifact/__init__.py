"""Artefacts: compiled programs as folders of JSON, with where they come from and what they were measured at.

`save` and `load` are in `folder`, what the files hold is in `documents`, `difference` and `describe` in `comparison`.
"""

from coda.optimize.artifact.comparison import DemoChange, Description, Difference, describe, difference
from coda.optimize.artifact.documents import (
    BenchmarkReference,
    Cost,
    Gain,
    Manifest,
    ModeTrials,
    Policy,
    Score,
    SplitReference,
    Trials,
)
from coda.optimize.artifact.folder import check_prompts, ensure_replaceable, load, read_manifest, read_policy, save

__all__ = [
    "BenchmarkReference",
    "Cost",
    "DemoChange",
    "Description",
    "Difference",
    "Gain",
    "Manifest",
    "ModeTrials",
    "Policy",
    "Score",
    "SplitReference",
    "Trials",
    "check_prompts",
    "describe",
    "difference",
    "ensure_replaceable",
    "load",
    "read_manifest",
    "read_policy",
    "save",
]
