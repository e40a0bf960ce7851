"""The command line, called in a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coda.cli import app
from coda.cli.console import run


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command: its exit status, stdout, stderr on one line."""

    def run_command(*arguments: str) -> tuple[int, str, str]:
        status = run(app, list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, " ".join(captured.err.split())

    return run_command
