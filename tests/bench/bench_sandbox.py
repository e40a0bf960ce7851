"""How fast the sandbox is: cold and warm starts, runs a second, and what a forged-proof verdict costs.

    python tests/bench/bench_sandbox.py [--quick]

Cold: a sandbox of its own for each program, as where nested namespaces are forbidden. Warm: forked from a template.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from coda.program.tools import isolation
from coda.program.tools.sandbox import Sandbox
from coda.program.types import Execution

PROGRAMS = {
    "print(1)": "print(1)",
    "numpy": "import numpy\nprint(numpy.arange(3).sum())",
    "sympy": "import sympy\nprint(sympy.sqrt(8))",
}
TESTED = "def add(a, b):\n    return a + b\n"
TESTS = [f"assert add({n}, {n}) == {2 * n}" for n in range(5)]

Run = Callable[[Sandbox], Awaitable[Execution]]


async def median_ms(sandbox: Sandbox, run: Run, repeats: int) -> float:
    """Median milliseconds of one run at a time, the first (which warms up) left out."""
    seconds = []
    for number in range(repeats + 1):
        began = time.perf_counter()
        execution = await run(sandbox)
        assert execution.outcome == "ok", execution
        if number:
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1e3


async def per_second(sandbox: Sandbox, run: Run, runs: int) -> float:
    """Runs a second, with as many waiting as there are runs."""
    await run(sandbox)
    began = time.perf_counter()
    await asyncio.gather(*[run(sandbox) for _ in range(runs)])
    return runs / (time.perf_counter() - began)


def program(source: str) -> Run:
    """Run this program."""
    return lambda sandbox: sandbox.run(source)


async def measure(quick: bool) -> dict[str, float]:
    """All figures, by name."""
    ground = isolation.survey()
    cold, warm = Sandbox(), Sandbox()
    cold.ground = replace(ground, nested=False, level="reduced")
    repeats, runs = (5, 60) if quick else (20, 600)
    figures: dict[str, float] = {}
    for name, source in PROGRAMS.items():
        figures[f"cold {name}, ms"] = await median_ms(cold, program(source), repeats // 2)
        figures[f"warm {name}, ms"] = await median_ms(warm, program(source), repeats)
        figures[f"cold / warm {name}"] = figures[f"cold {name}, ms"] / figures[f"warm {name}, ms"]
        figures[f"warm {name}, runs/s"] = await per_second(warm, program(source), runs)
    figures["tests (5 assertions), ms"] = await median_ms(warm, lambda s: s.run_tests(TESTED, TESTS), repeats)
    figures["tests (5 assertions), runs/s"] = await per_second(warm, lambda s: s.run_tests(TESTED, TESTS), runs // 2)
    cold.close()
    warm.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()
    figures = asyncio.run(measure(options.quick))
    if options.json:
        print(json.dumps(figures))
        return
    print(f"sandbox: {isolation.survey().level}, {len(os.sched_getaffinity(0))} cores")
    for name, value in figures.items():
        print(f"  {name:32} {value:9.1f}")
    verdict = "holds" if figures["cold / warm sympy"] >= 10 else "DOES NOT HOLD"
    print(f"warm sympy at least 10 times as fast as cold: {verdict}")


if __name__ == "__main__":
    main()
