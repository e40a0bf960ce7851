"""The process of the embedded Engine: llama.cpp's OpenAI-compatible server, until standard input ends.

``coda.program.engine.local`` starts this file by its path, so it imports nothing of CODA. It gets its arguments as one
JSON object, answers with one line of JSON (``address`` and ``context``, or ``missing``, or ``error``), and serves.

A process of its own, because the server cannot be torn down in a process that must go on: with a request under way,
its destructor never returns, and leaving it to the end of the process crashes. A process can always be ended. And it
ends by itself when the parent does, however that happens, because its standard input then closes.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any


def main() -> None:
    """Start the server, say where it listens, serve until standard input ends."""
    # Native code writes to the file descriptor, so the line for the parent goes to a copy of it.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as parent:
        os.dup2(2, 1)
        answer, server = start(json.loads(sys.argv[1]))
        parent.write(json.dumps(answer) + "\n")
    if server is not None:
        sys.stdin.buffer.read()
    # No destructors: see above.
    os._exit(0)


def start(arguments: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Start the server and return what to tell the parent, and the server where there is one."""
    try:
        import xllamacpp
    except ImportError as error:
        return {"missing": str(error)}, None
    try:
        server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), arguments))
    except (RuntimeError, OverflowError) as error:
        return {"error": str(error)}, None
    address: str = server.listening_address
    return {"address": address, "context": _context(address)}, server


def _parameters(parameters: Any, arguments: dict[str, Any]) -> Any:
    parameters.model.path = arguments["file"]
    parameters.model_alias = {arguments["name"]}
    parameters.hostnames = [arguments["host"]]
    parameters.port = arguments["port"]
    parameters.n_parallel = arguments["slots"]
    parameters.n_ctx = arguments["slots"] * arguments["context_per_slot"]
    parameters.cont_batching = True
    parameters.cache_prompt = True
    parameters.cache_ram_mib = arguments["prompt_cache_mb"]
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = arguments["threads"]
    parameters.ui = False
    parameters.cors_origins = ""  # pages in a browser are not to read from the server
    parameters.verbosity = 1  # errors only
    return parameters


def _context(address: str) -> int:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{address}/slots", timeout=60) as reply:
        return int(json.load(reply)[0]["n_ctx"])


if __name__ == "__main__":
    main()
