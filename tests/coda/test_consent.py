"""Asking before much is spent: on a terminal, once, and never where nobody can answer."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from coda.cli import consent
from coda.optimize.estimate import Cost, Estimate, Phase
from coda.program.settings import Limits

PHASES = (Phase("baseline", 10, Cost(30, 900, 100, 65.0, 0.5)), Phase("proof", 5, Cost(15, 450, 50, 5.0, 0.25)))
EXPECTED = Estimate(3, PHASES)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let stderr (and stdin, with an answer waiting in it) be a terminal; gives what was written."""

    def begin(answer: str | None) -> io.StringIO:
        written = io.StringIO()
        console = Console(file=written, force_terminal=answer is not None, width=200, color_system=None)
        monkeypatch.setattr(consent, "err", console)
        monkeypatch.setattr("coda.cli.console.err", console)
        stdin = io.StringIO(f"{answer}\n")
        stdin.isatty = lambda: answer is not None  # type: ignore[method-assign]
        monkeypatch.setattr("sys.stdin", stdin)
        return written

    return begin


@pytest.mark.parametrize(("answer", "expected"), [("y", True), ("n", False)])
def test_a_person_is_asked(terminal: Any, answer: str, expected: bool) -> None:
    written = terminal(answer)
    assert consent.consents(EXPECTED, Limits(max_calls=500), yes=False) is expected
    text = written.getvalue()
    assert "Go on?" in text
    assert "At most: 500 calls" in text
    total = next(line for line in text.splitlines() if line.startswith("total")).split()
    assert total == ["total", "15", "45", "1500", "1:10", "0.75"]


def test_nobody_is_asked_who_has_said_yes(terminal: Any) -> None:
    written = terminal("n")
    assert consent.consents(EXPECTED, Limits(), yes=True)
    assert "Go on?" not in written.getvalue()


def test_without_a_terminal_it_goes_on_and_says_so(terminal: Any) -> None:
    written = terminal(None)
    assert consent.consents(EXPECTED, Limits(), yes=False)
    assert "going on" in written.getvalue()
