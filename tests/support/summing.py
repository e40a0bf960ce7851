"""A benchmark of sums, and an Engine that can add once its instruction tells it to be careful."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_engine import LocalEngine

from coda.data.benchmarks import Benchmark, Example
from coda.optimize.compile import Compilation, CompileConfig, Compiler, Splits
from coda.optimize.observers import Observer, Observers
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Limits, Settings
from coda.program.types import Problem

SETTINGS = Settings(adapter="fields", plan=True, paths=("reason", "reason"), max_paths=2, quorum=2, max_refinements=0)
ADVICE = "Add the numbers with the greatest care."
"""What the Engine proposes when it is asked for an instruction."""


def split(name: str, first: int, n: int) -> Benchmark:
    examples = tuple(
        Example(id=f"{name}-{i}", problem=Problem(text=f"What is {i} + 5?"), answer=str(i + 5), split=name)  # type: ignore[arg-type]
        for i in range(first, first + n)
    )
    return Benchmark(name="sums", examples=examples, split=name, digest=name)


SPLITS = Splits(train=split("train", 100, 16), validation=split("validation", 200, 4), test=split("test", 300, 3))


def adder(messages: list[dict[str, Any]]) -> str:
    """Adds right for every third problem, and for all once it is told to be careful; proposes just that."""
    system, asked = messages[0]["content"], messages[-1]["content"]
    wanted = asked.rpartition("Respond with")[2] or system
    fields = list(dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", wanted)))
    fields = [name for name in fields if name != "completed"]
    values = dict.fromkeys(fields, ADVICE)
    numbers = [int(number) for number in re.findall(r"(\d+) \+ 5", asked)]
    if "answer" in fields and numbers:
        right = numbers[-1] + 5
        careful = "care" in system or numbers[-1] % 3 == 0
        values |= {"answer": str(right if careful else right + 1), "reasoning": f"It is {numbers[-1]} and 5."}
    if "paths" in fields:
        paths = [{"mode": "reason", "approach": approach} for approach in ("count", "add")]
        values |= {"difficulty": "easy", "paths": json.dumps(paths)}
    values |= {"module_advice": f'{{"executor.reason": "{ADVICE}"}}'} if "module_advice" in fields else {}
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in values.items()) + "\n\n[[ ## completed ## ]]"


class Quiet:
    """Watches, and notes what was measured and said."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.said: list[str] = []

    def on_phase(self, phase: str, detail: str) -> None:
        self.said.append(f"{phase}: {detail}")

    @contextmanager
    def measuring(self, name: str, run_dir: Path) -> Iterator[Observer]:
        self.names.append(name)
        yield Observers()


class Compiling:
    """``compiling(CompileConfig(...), Limits(...))`` compiles on the adder; ``.engine`` counts."""

    def __init__(self, run_dir: Path, engine: LocalEngine) -> None:
        self.run_dir = run_dir
        self.engine = engine
        self.watcher = Quiet()

    def __call__(
        self, config: CompileConfig, limits: Limits | None = None, settings: Settings = SETTINGS, retries: int = 4
    ) -> Compilation:
        setup = EngineConfig(
            model="openai/test-model",
            api_base=self.engine.api_base,
            limits=limits or Limits(),
            cache_dir=self.run_dir / "cache",
            max_retries=retries,
        )
        self.watcher = Quiet()
        with Engine(setup) as engine:
            program = Coda(settings, engine=engine)
            return Compiler(program, SPLITS, config, run_dir=self.run_dir, watcher=self.watcher).run()
