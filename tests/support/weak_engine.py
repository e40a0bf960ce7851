"""An Engine with two known weaknesses, and a reflection model that reads what it is told.

The Engine plans two paths that are the same, wrong idea unless its planning instruction says `X`; its reflector drops
the right answer unless its instruction says `Y`. Some problems need neither, some need one, a third of them both.

The reflection model writes one tip as the new instruction. Where the feedback names a complaint that it knows (paths
are alike; the right answer was dropped), it writes the tip against it; else it takes one of `TIPS` by chance, among
which `X` and `Y` are two. Without stage feedback ("Expected 12, got 13.") it therefore has only luck.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from coda.data.benchmarks import Example
from coda.optimize.config import CompileConfig
from coda.optimize.optimizers import Workbench, optimizer
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.budget import Budget
from coda.program.settings import Settings
from coda.program.types import Problem, Usage

X = "Give paths of different kinds."
Y = "Keep an answer that the evidence supports."
TIPS = (X, Y, *(f"Work with habit number {number} in mind." for number in range(1, 23)))

SETTINGS = Settings(
    adapter="fields",
    straight=False,
    paths=("reason", "reason"),
    max_paths=2,
    max_refinements=0,
    max_rounds=1,
    verifier="majority",
)


def weak(messages: list[dict[str, Any]]) -> str:
    """The Engine, and the model that writes instructions for it: told apart by the fields that they are asked for."""
    system, asked = messages[0]["content"], messages[-1]["content"]
    fields = re.findall(r"\[\[ ## (\w+) ## \]\]", asked.rpartition("Respond with")[2] or system)
    values = dict.fromkeys((name for name in fields if name != "completed"), "…")
    numbers = [int(number) for number in re.findall(r"What is (\d+) \+ 5", asked)]
    number = numbers[-1] if numbers else 0
    if "paths" in values:
        good = X in system or number % 3 == 0
        paths = [{"mode": "reason", "approach": approach} for approach in ("count", "add" if good else "count again")]
        values |= {"difficulty": "easy", "paths": json.dumps(paths)}
    elif "inconsistencies" in values:
        values["answer"] = str(number + 5 if Y in system or number % 2 == 0 else number)
    elif "answer" in values:
        path = asked.rpartition("## approach ## ]]")[2].strip()
        values["answer"] = str(number + (5 if path.startswith("add") else 6 if path.startswith("count again") else 7))
    elif "better" in values:
        values["better"] = "first"
    else:
        values = dict.fromkeys(values, tip(asked))
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items())


def tip(asked: str) -> str:
    """The new instruction: against the complaint in the feedback, else any."""
    if "are the same idea" in asked or "No path led to the right answer" in asked:
        return X
    if "and was dropped" in asked:
        return Y
    return TIPS[int(hashlib.sha256(asked.encode()).hexdigest(), 16) % len(TIPS)]


def found(api_base: str, *, rollouts: int, seed: int, by_stage: bool) -> set[str]:
    """Run GEPA once; which of ``X`` and ``Y`` its best candidate has."""
    examples = tuple(
        Example(id=str(n), problem=Problem(text=f"What is {n} + 5?"), answer=str(n + 5), split="train")
        for n in range(100, 124)
    )
    config = CompileConfig(rollouts=rollouts, seed=seed, stage_feedback=by_stage, only="planner,reflector", finalists=1)
    with tempfile.TemporaryDirectory() as folder:
        setup = EngineConfig(model="openai/test-model", api_base=api_base, seed=seed, cache_dir=Path(folder))
        with Engine(setup) as engine:
            bench = Workbench(Coda(SETTINGS, engine=engine), examples, config, Budget(), Usage())
            programs = [candidate.program for candidate in optimizer("gepa").candidates(bench)]
    texts = " ".join(p.signature.instructions for each in programs[:1] for _, p in each.named_predictors())
    return {name for name in (X, Y) if name in texts}
