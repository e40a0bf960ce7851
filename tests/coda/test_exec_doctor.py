"""``coda exec`` and ``coda doctor`` as a user meets them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from coda.cli import app
from coda.cli.console import run
from coda.program.tools import isolation
from coda.program.tools.isolation import Ground
from coda.program.tools.sandbox import shared_sandbox

confined = pytest.mark.skipif(isolation.survey().level == "off", reason="no sandbox here")


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coda.program.tools.sandbox._shared", {})


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command: its exit status, stdout, stderr."""

    def run_command(*arguments: str) -> tuple[int, str, str]:
        status = run(app, list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


def written(name: str, content: str) -> str:
    Path(name).write_text(content)
    return name


@confined
def test_exec_shows_what_the_program_printed(call: Any) -> None:
    status, out, err = call("exec", written("p.py", "print(input() * 2)"), "--stdin", written("in", "ab\n"))
    assert (status, out) == (0, "abab\n")
    assert err.startswith("ok in ")


@confined
def test_exec_of_a_failing_program_shows_its_error_and_fails(call: Any) -> None:
    status, out, err = call("exec", written("p.py", "print('before')\n1 / 0\n"))
    assert (status, out) == (1, "before\n")
    assert "ZeroDivisionError" in err
    assert err.count("Traceback") == 1


@confined
def test_exec_prints_one_json_document(call: Any) -> None:
    status, out, err = call("exec", written("p.py", "print('x' * 100000)"), "--json")
    result = json.loads(out)
    assert (status, err) == (1, "")
    assert (result["outcome"], result["truncated"]) == ("output", True)
    assert result["isolation"] in {"full", "reduced"}


@confined
def test_exec_keeps_to_the_limits(call: Any) -> None:
    status, _, err = call("exec", written("p.py", "while True: pass"), "--timeout", "0.5")
    assert (status, "did not end within 0.5 seconds" in err) == (1, True)
    status, out, _ = call("exec", written("p.py", "x = bytearray(10**8)"), "--memory", "64", "--json")
    assert (status, json.loads(out)["outcome"]) == (1, "memory")


@confined
def test_exec_reads_the_program_from_standard_input(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("print('piped')"))
    assert call("exec", "-")[:2] == (0, "piped\n")


@confined
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
def test_exec_knows_the_language_by_the_files_ending(call: Any) -> None:
    program = '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n'
    assert call("exec", written("p.c", program))[:2] == (0, "compiled\n")
    assert call("exec", written("p.txt", program), "--lang", "c")[:2] == (0, "compiled\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.py"], "absent.py: No such file or directory. Give the path of a readable file."),
        (["."], "Is a directory"),
        (["p.py", "--lang", "cobol"], "'python', 'c' or 'cpp', got 'cobol'"),
        (["p.py", "--timeout", "0"], "--timeout"),
        (["p.py", "--memory", "1"], "--memory"),
        (["p.py", "--stdin", "absent"], "absent: No such file"),
        ([], "file"),
    ],
)
def test_exec_of_bad_input_is_one_sentence_and_status_2(call: Any, arguments: list[str], says: str) -> None:
    written("p.py", "print(1)")
    status, out, err = call("exec", *arguments)
    assert (status, out) == (2, "")
    assert says.lower() in " ".join(err.split()).lower()
    assert "Traceback" not in err


def test_exec_of_a_file_that_is_no_text_is_refused(call: Any) -> None:
    Path("p.py").write_bytes(b"\xff\xfe")
    status, _, err = call("exec", "p.py")
    assert (status, "no UTF-8 text" in err) == (2, True)


def test_exec_without_a_sandbox_says_why_and_fails(call: Any) -> None:
    shared_sandbox().ground = Ground("off", "Bubblewrap is not installed: install it.")
    status, out, err = call("exec", written("p.py", "print(1)"))
    assert (status, out) == (1, "")
    assert "install it" in err


def test_exec_without_a_sandbox_is_loud_where_it_is_asked_for(call: Any) -> None:
    shared_sandbox(unsafe=True).ground = isolation.without_isolation()
    status, out, err = call("exec", written("p.py", "print(1)"), "--unsafe-local-exec")
    assert (status, out) == (0, "1\n")
    assert "WARNING" in err
    assert "isolation unsafe" in err


def test_doctor_tells_layer_by_layer(call: Any) -> None:
    status, out, _ = call("doctor")
    assert status == 0
    for name in ("Sandbox:", "bubblewrap", "Engine", "weights", "hub cache", "MLflow store", "GB free"):
        assert name in out


def test_doctor_prints_one_json_document(call: Any) -> None:
    status, out, _ = call("doctor", "--json")
    report = json.loads(out)
    assert status == 0
    assert {"python", "sandbox", "engine", "data", "tracking", "disk"} == set(report)
    assert report["sandbox"]["level"] == isolation.survey().level
    for finding in (*report["sandbox"]["layers"], *report["engine"], *report["disk"]):
        assert finding["works"] or finding["remedy"]


def test_doctor_says_how_to_get_what_is_missing(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "BUBBLEWRAP", "no-such-program")
    isolation.survey.cache_clear()
    _, out, _ = call("doctor")
    isolation.survey.cache_clear()
    assert "Sandbox: off" in out
    assert "install the package `bubblewrap`" in out
