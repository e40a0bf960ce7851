"""What MLflow has tracked: runs as rows, and its own user interface on the right store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from pydantic import BaseModel, ConfigDict

from coda.errors import CodaError, UsageError
from coda.experiments.tracking import QUIET, Tracker

PAGE = 500
STARTING = 60.0
"""Seconds that MLflow's user interface may take to answer."""


class Filter(BaseModel):
    """Which runs; what is ``None`` does not matter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    benchmark: str | None = None
    """Part of the benchmark's name."""
    model: str | None = None
    """Part of the model's name."""
    kind: str | None = None
    """Part of what was run: compile, Coda, single, …"""
    status: str | None = None
    """finished, failed, killed or running."""
    min_accuracy: float | None = None
    """The least accuracy, from 0 to 1."""


@dataclass(frozen=True)
class TrackedRow:
    """A run as MLflow has it; ``accuracy`` from 0 to 1, ``None`` where nothing was measured."""

    id: str
    name: str
    kind: str
    benchmark: str
    model: str
    status: str
    started: str
    accuracy: float | None
    n: int | None
    tokens: int | None


def list_runs(uri: str | None, directory: Path, experiment: str, wanted: Filter, *, limit: int) -> list[TrackedRow]:
    """The latest runs, newest first.

    Raises:
        UsageError: There is no such store, or no such experiment in it.
        CodaError: The store cannot be read.
    """
    store = existing_store(uri, directory)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    found: list[TrackedRow] = []
    try:
        client = MlflowClient(tracking_uri=store)
        known = client.get_experiment_by_name(experiment)
        if known is None:
            raise UsageError(f"There is no experiment {experiment!r} in {store}. Name another one with --experiment.")
        token: str | None = None
        while len(found) < limit:
            page = client.search_runs(
                [known.experiment_id], order_by=["attributes.start_time DESC"], max_results=PAGE, page_token=token
            )
            found += [row for row in map(_row, page) if _keeps(row, wanted)]
            token = page.token
            if not token:
                break
    except MlflowException as error:
        raise CodaError(f"{store} cannot be read: {error}. Check --tracking-uri.") from error
    return found[:limit]


def existing_store(uri: str | None, directory: Path) -> str:
    """The store's address.

    Raises:
        UsageError: It is a file that does not exist, or of a kind that MLflow cannot use.
    """
    store = Tracker(uri, directory=directory).uri
    scheme, _, path = store.partition(":///")
    if scheme.startswith("sqlite") and not Path(path).exists():
        raise UsageError(f"{path} does not exist: nothing is tracked there yet. Run coda eval, or give --tracking-uri.")
    return store


def serve(store: str, port: int | None, tell: Callable[[str], None]) -> None:
    """Run MLflow's user interface until Ctrl-C; ``tell`` is given its address as soon as it answers.

    Raises:
        CodaError: It does not come up.
    """
    if store.startswith(("http:", "https:")):
        tell(store)
        return
    port = port or _free_port()
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "ui",
        "--backend-store-uri",
        store,
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    environment = {**os.environ, **QUIET}
    child = subprocess.Popen(command, start_new_session=True, stdout=sys.stderr, env=environment)  # noqa: S603
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(child, address)
        tell(address)
        child.wait()
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)
        _stop(child)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _wait(child: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + STARTING
    while time.monotonic() < end and child.poll() is None:
        try:
            with urlopen(f"{address}/health", timeout=2):  # noqa: S310 - our own address
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise CodaError(f"MLflow's user interface did not come up at {address}. Its output above says why.")


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the server with its workers."""
    for wish in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, wish)
            child.wait(timeout=5)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _row(run: Any) -> TrackedRow:
    tags, metrics = run.data.tags, run.data.metrics
    started = datetime.fromtimestamp(run.info.start_time / 1000, UTC).isoformat(timespec="seconds")
    return TrackedRow(
        id=run.info.run_id,
        name=run.info.run_name or "",
        kind=tags.get("coda.kind") or tags.get("coda.program") or "",
        benchmark=tags.get("coda.benchmark", ""),
        model=tags.get("coda.model", ""),
        status=str(run.info.status).lower(),
        started=started,
        accuracy=metrics.get("accuracy", metrics.get("test/compiled")),
        n=int(metrics["n"]) if "n" in metrics else None,
        tokens=int(metrics["tokens"]) if "tokens" in metrics else None,
    )


def _keeps(row: TrackedRow, wanted: Filter) -> bool:
    texts = ((row.benchmark, wanted.benchmark), (row.model, wanted.model), (row.kind, wanted.kind))
    if any(part is not None and part.casefold() not in text.casefold() for text, part in texts):
        return False
    if wanted.status is not None and row.status != wanted.status.casefold():
        return False
    return wanted.min_accuracy is None or (row.accuracy is not None and row.accuracy >= wanted.min_accuracy)
