"""Tracked runs in the terminal, and MLflow's own user interface on the right store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from synthetic_run import Synthetic, make_run

from coda.errors import UsageError
from coda.experiments.tracked import Filter, list_runs
from coda.experiments.tracking import Tracker


def test_runs_are_listed_and_filtered(store: Path, tmp_path: Path) -> None:
    tracker = Tracker(directory=store, experiment="listed")
    for name, skill in (("single", 0.0), ("Coda", 1.0)):
        with tracker.run(name) as run:
            run.on_end(make_run(tmp_path / name, Synthetic(name, skill=skill)))

    def names(**wanted: object) -> list[str]:
        return [row.name for row in list_runs(None, store, "listed", Filter.model_validate(wanted), limit=9)]

    assert sorted(names()) == ["Coda", "single"]
    assert names(kind="SING") == ["single"]
    assert names(min_accuracy=0.5) == ["Coda"]
    assert names(status="failed") == names(benchmark="other") == names(model="other") == []


def test_a_store_that_does_not_exist_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"mlflow\.db does not exist"):
        list_runs(None, tmp_path, "coda", Filter(), limit=9)
    assert list(tmp_path.iterdir()) == []


def test_the_ui_says_where_it_is_and_stops_with_ctrl_c(store: Path) -> None:
    command = [sys.executable, "-m", "coda.cli", "ui", "--tracking-uri", f"sqlite:///{store / 'mlflow.db'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urlopen(f"{address}/health") as reply:
            assert reply.status == 200
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 0
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{address}/health")
