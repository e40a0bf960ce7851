"""What all commands share: where output goes, and how they end.

Results go to stdout; with ``--json`` exactly one JSON document. Progress and messages go to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from cyclopts import App, CycloptsError
from pydantic import BaseModel, ValidationError
from rich.console import Console

from coda.errors import CodaError

INTERRUPTED = 130

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False)


def run(app: App, arguments: list[str] | None) -> int:
    """Run a command and return the exit status; every foreseen failure is one sentence on stderr."""
    try:
        status = app(arguments, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        return _fail(_usage(error), 2)
    except CodaError as error:
        return _fail(str(error), error.exit_status)
    except KeyboardInterrupt:
        return _fail("Interrupted. Run the same command again to go on.", INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has gone; nothing more can be said on stdout, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status if isinstance(status, int) else 0


def note(message: str) -> None:
    """Say something in passing, on stderr."""
    err.print(message, markup=False)


def emit_json(document: BaseModel | Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON document on stdout."""
    value = document.model_dump(mode="json") if isinstance(document, BaseModel) else document
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _fail(message: str, status: int) -> int:
    err.print(f"coda: {message}", markup=False, soft_wrap=True)
    return status


def _usage(error: CycloptsError) -> str:
    """One sentence for bad usage; pydantic's report is reduced to the option, the complaint, and the value."""
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        option = "--" + "-".join(str(part) for part in first["loc"]).replace("_", "-")
        return f"{option}: {first['msg']}, got {first['input']!r}."
    return " ".join(str(error).split())
