"""What the Engine layer costs: the same graph of calls through plain aiohttp and through dspy.Predict on an Engine.

A problem makes 10 calls, four deep (1, 4, 4, 1); the server is another process and answers after ``--latency`` seconds.
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


async def measure(label: str, call: Call, problems: int, latency: float, results: list[dict[str, object]]) -> None:
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(problem(call, f"{label}-{problems}-{number}") for number in range(problems)))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    ideal = len(WIDTHS) * latency
    result: dict[str, object] = {
        "way": label,
        "problems": problems,
        "seconds": round(seconds, 3),
        "problems/s": round(problems / seconds, 1),
        "share of ideal": round(ideal / seconds, 3),
        "client CPU ms/call": round(cpu / problems / CALLS * 1000, 3),
    }
    print(json.dumps(result), flush=True)
    results.append(result)


async def plain(base: str, sizes: list[int], latency: float, results: list[dict[str, object]]) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(text: str) -> object:
            body = {"model": "test-model", "messages": [{"role": "user", "content": text}]}
            async with session.post(f"{base}/chat/completions", json=body) as response:
                return json.loads(await response.read())["choices"][0]["message"]["content"]

        await problem(call, "warm")
        for size in sizes:
            await measure("aiohttp", call, size, latency, results)


async def engine(base: str, sizes: list[int], latency: float, results: list[dict[str, object]]) -> None:
    config = EngineConfig(model="openai/test-model", api_base=base, concurrency=2000)
    with dspy.context(lm=Engine(config).lm, adapter=adapter_for("fields")):
        predict = dspy.Predict("question -> answer")

        async def call(text: str) -> object:
            return (await predict.acall(question=text)).answer

        await problem(call, "warm")
        for size in sizes:
            await measure("dspy.Predict on Engine", call, size, latency, results)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--problems", type=int, nargs="+", default=[1, 32, 200])
    arguments = parser.parse_args()
    results: list[dict[str, object]] = []
    with server(arguments.latency) as base:
        await plain(base, arguments.problems, arguments.latency, results)
        await on_background_loop(engine(base, arguments.problems, arguments.latency, results))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak memory MB": round(peak)}))


if __name__ == "__main__":
    asyncio.run(main())
