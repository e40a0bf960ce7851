"""What makes results belong together, and what must never be stored."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from coda.optimize.identity import differing, flat, git_revision, without_password


def test_differences_are_named_by_dotted_keys() -> None:
    held = {"program": {"quorum": 2, "plan": True}, "samples": 1}
    wanted = {"program": {"quorum": 3, "plan": True, "new": None}, "samples": 1}
    assert differing(held, wanted) == {"program.new": ("(absent)", None), "program.quorum": (2, 3)}


def test_nested_values_get_dotted_names_and_empty_ones_stay() -> None:
    assert flat({"a": {"b": {"c": 1}, "d": {}}, "e": [1]}) == {"a.b.c": 1, "a.d": {}, "e": [1]}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://user:secret@host:80/v1", "http://host:80/v1"),
        ("https://host/v1?key=secret", "https://host/v1"),
        ("sqlite:////srv/runs/mlflow.db", "sqlite:////srv/runs/mlflow.db"),
        (None, None),
    ],
)
def test_addresses_are_shown_without_secrets(address: str | None, shown: str | None) -> None:
    assert without_password(address) == shown


def test_outside_a_checkout_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_revision(tmp_path) is None


def test_in_a_checkout_it_is_the_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    assert git_revision(tmp_path) is None
    git("commit", "-q", "--allow-empty", "-m", "first")
    assert git_revision(tmp_path) == git("rev-parse", "HEAD")
