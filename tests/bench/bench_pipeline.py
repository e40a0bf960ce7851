"""What the Conductor costs beside the Engine: one problem through a local engine, against its critical path.

The problem takes every stage: a plan, four paths that disagree (two at once, then two), reflection, and a knockout of
five answers, each pair in both orders. That is 14 requests, seven deep; the critical path is seven times the latency.
Nothing runs in the sandbox.

    python tests/bench/bench_pipeline.py --latency 0.2 --runs 10
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from typing import Any

from local_engine import LocalEngine

from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Settings
from coda.program.types import Problem

DEPTH = 7
REQUESTS = 14
SETTINGS = Settings(
    adapter="json", straight=False, paths=("reason",) * 4, max_paths=4, quorum=2, verifier="compare", max_rounds=1
)
PATHS = [{"mode": "reason", "approach": f"Way number {n}."} for n in range(4)]


def script() -> Any:
    """Answers that never agree, so that all stages run."""
    numbers = itertools.count(1)

    def answer(messages: list[dict[str, Any]]) -> str:
        asked = messages[0]["content"]
        if "Judge how hard" in asked:
            return json.dumps({"difficulty": "hard", "paths": PATHS})
        if "Two attempts" in asked:
            return json.dumps({"reasoning": "Checked.", "better": "first"})
        return json.dumps({"reasoning": "Thus.", "inconsistencies": "All.", "answer": str(next(numbers))})

    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    with LocalEngine(script(), latency=options.latency, keep=False) as server:
        config = EngineConfig(model="openai/test-model", api_base=server.api_base)
        with Engine(config) as engine:
            program = Coda(SETTINGS, engine=engine)
            program.solve(Problem(text="Warm up."))
            ratios = []
            for number in range(options.runs):
                before, started = server.requests, time.perf_counter()
                program.solve(Problem(text=f"Problem number {number}."))
                ratios.append((time.perf_counter() - started) / (DEPTH * options.latency))
                if server.requests - before < REQUESTS:
                    raise SystemExit(f"only {server.requests - before} requests: the problem did not take every stage")
    print(
        f"one problem, {server.requests // (options.runs + 1)} requests, {DEPTH} deep, {options.latency} s each: "
        f"{statistics.median(ratios):.3f} x critical path (median of {options.runs}, "
        f"{min(ratios):.3f} to {max(ratios):.3f})"
    )


if __name__ == "__main__":
    main()
