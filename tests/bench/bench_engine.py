"""What the Engine layer costs: the same graph of calls through plain aiohttp and through dspy.Predict on an Engine.

A problem makes 10 calls, four deep (1, 4, 4, 1); the server is another process and answers after ``--latency`` seconds.
So many problems are worked on at once; each worker takes one, or, for a rate that lasts, several one after the other.
Run it on an idle machine: ``python tests/bench/bench_engine.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import dspy

from coda.program.adapters import adapter_for
from coda.program.concurrency import on_background_loop
from coda.program.engine import Engine, EngineConfig

WIDTHS = (1, 4, 4, 1)
CALLS = sum(WIDTHS)
SERVER = Path(__file__).parent.parent / "support" / "local_engine.py"

Call = Callable[[str], Awaitable[object]]


@dataclass(frozen=True)
class Load:
    """So many problems at once, by workers that take so many one after the other."""

    at_once: int
    each: int = 1


@contextmanager
def server(latency: float) -> Iterator[str]:
    """A local engine in a process of its own."""
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


async def problem(call: Call, name: str) -> None:
    for depth, width in enumerate(WIDTHS):
        await asyncio.gather(*(call(f"{name}/{depth}/{index}") for index in range(width)))


async def measure(label: str, call: Call, load: Load, latency: float) -> None:
    async def worker(number: int) -> None:
        for turn in range(load.each):
            await problem(call, f"{label}-{load}-{number}-{turn}")

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(worker, range(load.at_once)))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    ideal, problems = len(WIDTHS) * latency * load.each, load.at_once * load.each
    result: dict[str, object] = {
        "way": label,
        "at once": load.at_once,
        "one after the other": load.each,
        "seconds": round(seconds, 3),
        "problems/s": round(problems / seconds, 1),
        "share of ideal": round(ideal / seconds, 3),
        "client CPU ms/call": round(cpu / problems / CALLS * 1000, 3),
    }
    print(json.dumps(result), flush=True)


async def plain(base: str, loads: list[Load], latency: float) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(text: str) -> object:
            body = {"model": "test-model", "messages": [{"role": "user", "content": text}]}
            async with session.post(f"{base}/chat/completions", json=body) as response:
                return json.loads(await response.read())["choices"][0]["message"]["content"]

        await problem(call, "warm")
        for load in loads:
            await measure("aiohttp", call, load, latency)


async def engine(base: str, loads: list[Load], latency: float) -> None:
    config = EngineConfig(model="openai/test-model", api_base=base, concurrency=2000)
    with dspy.context(lm=Engine(config).lm, adapter=adapter_for("fields")):
        predict = dspy.Predict("question -> answer")

        async def call(text: str) -> object:
            return (await predict.acall(question=text)).answer

        await problem(call, "warm")
        for load in loads:
            await measure("dspy.Predict on Engine", call, load, latency)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    arguments = parser.parse_args()
    loads = [Load(1), Load(32), Load(32, each=10), Load(200), Load(200, each=5)]
    with server(arguments.latency) as base:
        await plain(base, loads, arguments.latency)
        await on_background_loop(engine(base, loads, arguments.latency))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak memory MB": round(peak)}))


if __name__ == "__main__":
    asyncio.run(main())
