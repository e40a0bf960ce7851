"""Templates kept warm, and no more programs at once than the machine has cores for."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from coda.errors import SandboxError
from coda.program.tools import root
from coda.program.tools.isolation import Ground
from coda.program.tools.space import TemplateGone
from coda.program.tools.template import START_SECONDS, Template

T = TypeVar("T")
Flavour = Literal["plain", "science"]

_USUAL = (
    *("bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "fractions", "functools", "heapq"),
    *("itertools", "json", "math", "operator", "random", "re", "statistics", "string", "typing"),
)
PRELOADED: dict[Flavour, tuple[str, ...]] = {"plain": _USUAL, "science": (*_USUAL, "numpy", "sympy")}
"""What a template imports before its first program."""

_SCIENCE = re.compile(r"\b(?:numpy|sympy|scipy|mpmath)\b")


def flavour_of(*sources: str) -> Flavour:
    """Which template suits these programs."""
    return "science" if any(map(_SCIENCE.search, sources)) else "plain"


@dataclass(frozen=True)
class Kind:
    """What kind of template a job needs.

    Attributes:
        flavour: What is preloaded.
        compiler: The compiler whose files it can see; ``None`` for the minimal file system.
    """

    flavour: Flavour = "plain"
    compiler: str | None = None


class Pool:
    """The templates of a sandbox. Lives on one event loop.

    Args:
        ground: What the machine gives.
        workers: Programs at once; by default the number of cores.
    """

    def __init__(self, ground: Ground, workers: int | None = None) -> None:
        self._ground = ground
        self._slots = asyncio.Semaphore(workers or len(os.sched_getaffinity(0)))
        self._starting: dict[Kind, asyncio.Lock] = {}
        self._warm: dict[Kind, Template] = {}
        self._closed = False

    async def use(self, kind: Kind, use: Callable[[Template], Awaitable[T]]) -> T:
        """Wait for a free place, and use a template for one job (or several that belong together).

        A template that has ended, whatever ended it, is replaced once.

        Raises:
            SandboxError: None can be started.
        """
        async with self._slots:
            try:
                if not self._ground.nested:
                    return await self._use_once(kind, use)
                try:
                    return await self._use_warm(kind, use)
                except TemplateGone:
                    self._warm.pop(kind).close()
                    return await self._use_warm(kind, use)
            except OSError as error:  # No descriptor, process or memory is left for it.
                raise SandboxError(f"A program could not be started: {error.strerror}.") from error

    async def _use_warm(self, kind: Kind, use: Callable[[Template], Awaitable[T]]) -> T:
        template = await self._warm_template(kind)
        try:
            return await use(template)
        finally:
            if not self._closed:
                template.replenish()

    async def _use_once(self, kind: Kind, use: Callable[[Template], Awaitable[T]]) -> T:
        """Use a template that serves these jobs alone: nothing else would keep them from later ones."""
        template = await self._start(kind)
        try:
            return await use(template)
        finally:
            await template.aclose()

    async def _warm_template(self, kind: Kind) -> Template:
        async with self._starting.setdefault(kind, asyncio.Lock()):
            template = self._warm.get(kind)
            if template is not None and template.process.poll() is None:
                return template
            if template is not None:
                template.close()
            self._warm[kind] = template = await self._start(kind, preload=True)
            return template

    async def _start(self, kind: Kind, *, preload: bool = False) -> Template:
        if self._closed:
            raise SandboxError("The sandbox is closed: make another.")
        files = root.minimal() if kind.compiler is None else root.toolchain(kind.compiler)
        modules = PRELOADED[kind.flavour] if preload else ()
        template = Template(self._ground.bwrap, files, modules, nested=self._ground.nested)
        template.delegation = self._ground.delegation
        loop = asyncio.get_running_loop()
        template.control.setblocking(False)
        try:
            message = await asyncio.wait_for(loop.sock_recv(template.control, 4096), START_SECONDS)
            template.greeting(message)
        except TimeoutError as error:
            template.close()
            raise SandboxError(f"The sandbox did not start within {START_SECONDS:g} seconds.") from error
        except BaseException:
            template.close()
            raise
        return template

    def close(self) -> None:
        """End every template, with all that runs in them."""
        self._closed = True
        for template in self._warm.values():
            template.close()
        self._warm.clear()
