"""How fast answers are graded: the fast path, the worker processes, and what an expression built to hang costs.

Run it on an idle machine: ``python tests/bench/bench_grading.py``. With recorded answers at hand (``CODA_SHARED_DATA``,
or ``../shared/data``) it also prints how far grades and labels agree.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from coda.data.benchmarks import load
from coda.data.grading import agrade
from coda.optimize.recorded import read_recorded
from coda.optimize.verify import averify
from coda.program.answers import aequivalent, extract
from coda.program.answers.checker import Checker
from coda.program.concurrency import run_sync

SHARED = Path(os.environ.get("CODA_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
HANGS = "10^{10^{10^{10}}}"


async def rate(n: int, at_once: int, work: Callable[[int], Awaitable[object]]) -> dict[str, object]:
    """Do it ``n`` times, so many at once."""
    slots = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with slots:
            await work(number)

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(n)))
    seconds = time.perf_counter() - started
    return {"n": n, "seconds": round(seconds, 3), "per second": round(n / seconds)}


async def through_workers(n: int, at_once: int, question: Callable[[int], tuple[str, str]]) -> dict[str, object]:
    """Different comparisons, all of them in the worker processes."""
    checker = Checker()
    await asyncio.gather(*(checker.same("x", f"y_{number}") for number in range(8)))
    try:
        figures = await rate(n, at_once, lambda number: checker.same(*question(number)))
        return {**figures, "processes": checker.started}
    finally:
        await checker.aclose()


async def beside_a_hang(n: int, at_once: int) -> dict[str, object]:
    """Plain answers beside an expression that hangs: it costs its limit and a process, the others nothing more."""
    checker = Checker()
    await asyncio.gather(*(checker.same("x", f"y_{number}") for number in range(8)))
    try:
        started = time.perf_counter()
        hanging = asyncio.ensure_future(checker.same(HANGS, "3"))
        figures = await rate(n, at_once, lambda number: checker.same(*whole(number)))
        await hanging
        return {**figures, "the one that hangs, seconds": round(time.perf_counter() - started, 2)}
    finally:
        await checker.aclose()


def whole(number: int) -> tuple[str, str]:
    """Whole numbers, every other pair equal."""
    return str(number), str(number + number % 2)


def fraction(number: int) -> tuple[str, str]:
    """A decimal and the fraction that it equals."""
    return f"{number}.5", f"{2 * number + 1}/2"


def surd(number: int) -> tuple[str, str]:
    """An expression that needs simplifying."""
    return rf"{number}\sqrt{{2}}", rf"\sqrt{{{2 * number * number}}}"


RECORDED = tuple(sorted(SHARED.glob("recorded_*.jsonl")))


async def main() -> None:
    """Print one line of JSON for each measurement."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=3000)
    options.add_argument("--at-once", type=int, default=16)
    given = options.parse_args()

    def show(name: str, figures: dict[str, object]) -> None:
        print(json.dumps({"what": name, **figures}))

    text = "He has 12 apples.\n" * 20 + "The answer is $\\frac{1}{2}$."
    started = time.perf_counter()
    for _ in range(given.n):
        extract(text, "math")
    show("extract", {"n": given.n, "per second": round(given.n / (time.perf_counter() - started))})
    show("fast path", await rate(given.n, 1, lambda number: aequivalent(*fraction(number), "math")))
    for question in (whole, fraction, surd):
        show(f"worker processes: {question.__doc__}", await through_workers(given.n, given.at_once, question))
    show("worker processes, one at a time: whole numbers", await through_workers(given.n, 1, whole))
    show("whole numbers beside a hang", await beside_a_hang(given.n, given.at_once))
    functions = load("functions").examples
    show("programs in the sandbox", await rate(len(functions), 8, lambda n: agrade(functions[n], functions[n].answer)))
    for file in RECORDED:
        started = time.perf_counter()
        found = await averify(read_recorded(file))
        figures = found.model_dump(include={"n", "samples", "pass_at_1", "majority", "oracle", "label_agreement"})
        show(file.stem, {**figures, "seconds": round(time.perf_counter() - started, 2)})


if __name__ == "__main__":
    run_sync(main())  # on the loop that the pipeline uses
