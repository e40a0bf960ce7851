"""The only place with event loops and threads.

The program is written once, async. One background loop serves the whole process, so that synchronous callers (DSPy's
optimizers, the command line) and concurrent ones share the Engine's connections and its limiter.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import dspy

T = TypeVar("T")

CLEAN_UP = 30.0
"""Seconds that an interrupted coroutine has for writing down what it has."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the process's event loop, which runs in a daemon thread of its own; start it on first use."""
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="coda-loop", daemon=True).start()
            _collect_garbage_less_often()
        return _loop


def _collect_garbage_less_often() -> None:
    """Raise the collector's thresholds, unless the program has set its own.

    Each call in flight keeps about 180 objects alive, none of them in a cycle. Looking through all of them after every
    700th new object takes a third of the CPU time when hundreds are in flight (``tests/bench/bench_engine.py``).
    """
    if gc.get_threshold() == (700, 10, 10):
        gc.set_threshold(50_000, 20, 20)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop and wait for it.

    The caller's context variables travel along (DSPy's settings and trace among them). Interrupting the wait
    cancels the coroutine, and waits until it has cleaned up (`CLEAN_UP` seconds at most).

    Raises:
        RuntimeError: When called on the background loop itself, where waiting would never end.
    """
    loop = background_loop()
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is loop:
        coroutine.close()
        raise RuntimeError("run_sync was called on the event loop that it waits for: await the coroutine instead")
    ended = threading.Event()

    async def run() -> T:
        try:
            return await coroutine
        finally:
            ended.set()

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait(CLEAN_UP)
        raise


async def on_background_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that must run on the background loop, from any loop."""
    if asyncio.get_running_loop() is background_loop():
        return await coroutine
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, background_loop()))


async def in_pool(pool: concurrent.futures.Executor, function: Callable[..., T], *args: Any) -> T:
    """Run a blocking function in ``pool``, never in the loop's default executor: that one serves the Engine's calls."""
    return await asyncio.get_running_loop().run_in_executor(pool, function, *args)


_tools = concurrent.futures.ThreadPoolExecutor(max_workers=16, thread_name_prefix="coda-tool")


async def in_tools_pool(function: Callable[..., T], *args: Any) -> T:
    """Run a user's function, which may block for long, where it delays nothing but other tools."""
    return await in_pool(_tools, function, *args)


async def within(seconds: float, awaitable: Awaitable[T]) -> T:
    """Await something for so many seconds at most.

    Raises:
        TimeoutError: It took longer, and was cancelled.
    """
    async with asyncio.timeout(seconds):
        return await awaitable


class Branches:
    """Concurrent branches of one problem, each with a DSPy trace of its own.

    DSPy appends to its trace in the order in which calls *end*; optimizers that read it would then see another order
    in every run. Each branch therefore records separately, and ``close`` joins the records in the order in which the
    branches were started. Branches still running at ``close`` are cancelled and waited for.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._traces: list[list[Any]] = []
        self._outer: list[Any] | None = dspy.settings.trace

    def start(self, awaitable: Awaitable[T]) -> asyncio.Task[T]:
        """Start a branch."""
        trace: list[Any] | None = None if self._outer is None else []
        self._traces.append(trace if trace is not None else [])

        async def run() -> T:
            with dspy.context(trace=trace):
                return await awaitable

        task = asyncio.ensure_future(run())
        self._tasks.append(task)
        return task

    async def close(self) -> None:
        """Cancel what still runs, wait for it, and join the traces in starting order."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._outer is not None:
            for trace in self._traces:
                self._outer.extend(trace)


async def gather_ordered(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Run branches at once and return their results in order; the first failure cancels the others and is raised."""
    branches = Branches()
    tasks = [branches.start(awaitable) for awaitable in awaitables]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await branches.close()


async def in_default_pool(function: Callable[..., T], *args: Any) -> T:
    """Run a blocking function that is called once and not for every request, such as starting a server."""
    return await asyncio.to_thread(function, *args)
