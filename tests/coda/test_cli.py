"""The command line as a user meets it: results on stdout, messages on stderr, and the exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from local_engine import LocalEngine

from coda.program.tools.sandbox import shared_sandbox


def on(server: LocalEngine) -> list[str]:
    return ["--model", "openai/test-model", "--api-base", server.api_base]


def answered(messages: list[dict[str, Any]]) -> str:
    """Does the sum in the problem, in words or as a program."""
    first, second = re.findall(r"\d+", messages[-1]["content"])[:2]
    total = int(first) + int(second)
    return f"print({total})" if "program" in messages[0]["content"] else f"It is {total}.\nAnswer: {total}"


def sums(path: Path, n: int = 12) -> Path:
    """A user's own file of sums."""
    rows = [{"problem": f"What is {i} + {i + 3}?", "answer": str(2 * i + 3)} for i in range(10, 10 + n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from coda.cli.console import run; from coda.cli import app; run(app, ['--help'])"
    heavy = (
        "; print('HEAVY', sorted({'dspy', 'mlflow', 'datasets', 'math_verify', 'scipy', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code + heavy], capture_output=True, text=True, check=True)
    assert "quickstart" in done.stdout
    assert "HEAVY []" in done.stdout


def test_solve_prints_the_answer_and_the_story_apart(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, out, err = call(
            "solve", "What is 20 + 22?", *on(server), "--set", "adapter=plain", "--set", "plan=false"
        )
    assert (status, out) == (0, "42\n")
    assert "verdict" in err
    assert "2 calls" in err


def test_solve_json_is_one_document_with_the_whole_story(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, out, _ = call("solve", "What is 20 + 22?", *on(server), "--json", "--set", "plan=false")
    story = json.loads(out)
    assert status == 0
    assert story["answer"] == "42"
    assert len(story["attempts"]) == story["usage"]["calls"] == 2


def test_solve_reads_the_problem_from_a_file(call: Any, tmp_path: Path) -> None:
    (tmp_path / "problem.txt").write_text("What is 20 + 22?")
    with LocalEngine(answered) as server:
        status, out, _ = call("solve", "@problem.txt", *on(server), "--set", "plan=false")
    assert (status, out) == (0, "42\n")


def test_solve_ends_with_3_when_the_budget_ends_it(call: Any) -> None:
    with LocalEngine(answered) as server:
        arguments = ("--set", "plan=false", "--set", "quorum=4", "--max-calls", "1")
        status, out, err = call("solve", "What is 20 + 22?", *on(server), *arguments)
        assert server.requests == 1
    assert (status, out) == (3, "42\n")
    assert "budget of 1 calls" in err


def test_eval_measures_a_file_of_one_s_own_and_goes_on_where_it_was(call: Any, tmp_path: Path) -> None:
    file = sums(tmp_path / "sums.jsonl")
    with LocalEngine(answered) as server:
        command = ("eval", str(file), *on(server), "--run-dir", "run", "--json", "--set", "plan=false")
        status, out, _ = call(*command)
        requests = server.requests
        again, out_again, err = call(*command)
        assert server.requests == requests
    summary = json.loads(out)
    assert (status, again) == (0, 0)
    assert summary["accuracy"] == 1.0
    assert summary["calls"] == requests
    assert json.loads(out_again)["accuracy"] == 1.0
    assert "are there already" in err


def test_eval_refuses_a_run_directory_of_another_configuration(call: Any, tmp_path: Path) -> None:
    file = sums(tmp_path / "sums.jsonl")
    with LocalEngine(answered) as server:
        call("eval", str(file), *on(server), "--run-dir", "run", "--set", "plan=false")
        status, _, err = call("eval", str(file), *on(server), "--run-dir", "run", "--set", "quorum=3")
    assert status == 2
    assert "quorum" in err


def test_compile_eval_show_and_export_hang_together(call: Any, tmp_path: Path) -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")
    file = sums(tmp_path / "sums.jsonl", 40)
    with LocalEngine(answered) as server:
        effort = ("--probe", "1", "--candidates", "1", "--demos", "1", "--rollouts", "20")
        status, out, _ = call("compile", str(file), *on(server), *effort, "--out", "compiled", "--json")
        assert status == 0
        manifest = json.loads(out)
        assert manifest["model"] == "openai/test-model"
        status, out, _ = call("solve", "What is 20 + 22?", *on(server), "--program", "compiled")
        assert (status, out) == (0, "42\n")
    status, out, _ = call("show", "compiled")
    assert status == 0
    assert "Learned by calibration" in out
    status, out, _ = call("export", "compiled", "--format", "messages", "--out", "prompts")
    assert status == 0
    assert all(Path(line).exists() for line in out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "wrods"], ["wrods", "words"]),
        (["eval", "missing.jsonl"], ["missing.jsonl"]),
        (["eval", "words", "--limit", "0"], ["--limit", "greater"]),
        (["eval", "words", "--split", "tset"], ["--split", "test"]),
        (["eval", "words", "--modle", "x"], ["--modle", "--model"]),
        (["solve", "2+2?", "--set", "quorum"], ["NAME=VALUE"]),
        (["solve", "2+2?", "--set", "qorum=2"], ["qorum", "quorum"]),
        (["solve", "2+2?", "--settings", "none.toml"], ["none.toml"]),
        (["solve", "2+2?", "--profile", "qwne"], ["qwne", "qwen3"]),
        (["solve", "  "], ["empty"]),
        (["solve", "@none.txt"], ["none.txt"]),
        (["solve", "2+2?", "--model", "none.gguf"], ["none.gguf"]),
        (["solve", "2+2?", "--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1"], ["127.0.0.1:9"]),
        (["show", "nowhere"], ["nowhere"]),
        (["export", "nowhere"], ["nowhere"]),
        (["solv"], ["solve"]),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(call: Any, arguments: list[str], words: list[str]) -> None:
    status, out, err = call(*arguments)
    assert status == 2, err
    assert out == ""
    assert err.startswith("coda: ")
    assert all(word in err for word in words), err
    assert "Traceback" not in err


def test_a_missing_key_variable_is_named_and_no_key_is_ever_shown(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with LocalEngine(answered) as server:
        monkeypatch.delenv("CODA_TEST_KEY", raising=False)
        status, _, err = call("solve", "What is 1 + 2?", *on(server), "--api-key-env", "CODA_TEST_KEY")
        assert status == 2
        assert "CODA_TEST_KEY" in err
        monkeypatch.setenv("CODA_TEST_KEY", "sk-very-secret")
        file = sums(tmp_path / "sums.jsonl")
        call(
            "eval", str(file), *on(server), "--api-key-env", "CODA_TEST_KEY", "--run-dir", "run", "--set", "plan=false"
        )
        assert server.headers[-1]["authorization"] == "Bearer sk-very-secret"
    leaks = [path for path in tmp_path.rglob("*") if path.is_file() and b"sk-very-secret" in path.read_bytes()]
    assert leaks == []


def test_malformed_rows_are_named_by_file_line_and_field(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"problem": "1+1?", "answer": "2"}\n{"problem": "1+1?"}\n')
    status, _, err = call("eval", str(file), "--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1")
    assert status == 2
    assert "bad.jsonl" in err
    assert "2" in err
    assert "answer" in err


def test_a_server_that_is_none_is_said_to_be_none(call: Any) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}/v1"
        status, _, err = call("solve", "2+2?", "--model", "openai/x", "--api-base", base)
    finally:
        server.shutdown()
        server.server_close()
    assert status == 2
    assert base in err
    assert "OpenAI" in err


def test_a_model_that_the_server_does_not_have_is_named_with_those_it_has(call: Any) -> None:
    with LocalEngine(answered) as server:
        status, _, err = call("solve", "2+2?", "--model", "openai/other", "--api-base", server.api_base)
    assert status == 2
    assert "other" in err
    assert "test-model" in err


def test_verify_grades_recorded_answers_without_an_engine(call: Any, tmp_path: Path) -> None:
    samples = [{"text": "It is 4.", "correct": True}, {"text": "Answer: 5", "correct": False}, {"text": "2+2 = 4"}]
    row = {"problem": "What is 2 + 2?", "answer": "4", "samples": samples}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row))
    status, out, _ = call("verify", "samples.jsonl", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["n"], found["samples"], found["labelled"]) == (1, 3, 2)
    assert found["pass_at_1"] == pytest.approx(2 / 3)
    assert (found["majority"], found["oracle"], found["label_agreement"]) == (1.0, 1.0, 1.0)


def test_verify_says_which_row_is_malformed(call: Any, tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_text('{"problem": "2+2?", "answer": "4", "samples": "none"}\n')
    status, _, err = call("verify", "samples.jsonl")
    assert status == 2
    assert "samples.jsonl" in err


def test_compare_tells_two_runs_apart_problem_by_problem(call: Any, tmp_path: Path) -> None:
    file = sums(tmp_path / "sums.jsonl", 40)
    with LocalEngine(answered) as server:
        common = ("eval", str(file), *on(server), "--set", "plan=false", "--set", "adapter=plain")
        call(*common, "--run-dir", "right")
        server.script = "I do not know."
        call(*common, "--run-dir", "wrong", "--seed", "1")
    status, out, _ = call("compare", "wrong", "right", "--json")
    [found] = json.loads(out)
    assert status == 0
    assert found["paired"]["difference"]["mean"] == 1.0
    assert found["paired"]["lost"] == 0
    assert len(found["gained"]) == found["n"]


def test_engine_check_reports_what_a_server_supports_and_proposes_a_profile(call: Any, tmp_path: Path) -> None:
    with LocalEngine("42", unknown=["logprobs"]) as server:
        status, out, err = call("engine", "check", *on(server))
        assert 0 < server.requests <= 20
    assert status == 0
    assert 'name = "test-model"' in out
    assert "logprobs" in err


def test_engine_profile_prints_the_one_that_a_model_gets(call: Any) -> None:
    status, out, _ = call("engine", "profile", "Qwen/Qwen3-32B")
    assert (status, json.loads(out)["name"]) == (0, "qwen3")


def test_preset_prints_settings_that_can_be_used(call: Any, tmp_path: Path) -> None:
    status, printed, _ = call("preset", "fast")
    assert status == 0
    (tmp_path / "mine.toml").write_text(printed, "utf-8")
    with LocalEngine("print(42)") as server:
        status, _answer, _ = call("solve", "What is 6 * 7?", "--settings", str(tmp_path / "mine.toml"), *on(server))
        assert (status, server.requests) == (0, 1)
    status, listed, told = call("preset")
    assert [line.split()[0] for line in listed.splitlines()] == ["fast", "auto", "thorough", "published"]
    assert "--preset NAME" in told


def test_a_preset_says_how_much_thought_a_problem_gets(call: Any) -> None:
    if not shared_sandbox().available:
        pytest.skip(f"no sandbox here: {shared_sandbox().why}")
    with LocalEngine("print(42)") as server:
        status, answer, _ = call("solve", "What is 6 * 7?", "--preset", "fast", *on(server))
        assert (status, answer.strip(), server.requests) == (0, "42", 1)


def test_the_verifier_s_own_model_counts_in_the_same_limits(call: Any) -> None:
    def disagree(messages: list[dict[str, Any]]) -> str:
        return "print(41)" if "Python program" in str(messages) else "Answer: 42"

    with LocalEngine(disagree) as server, LocalEngine("Answer: first") as judge:
        arguments = [
            "solve",
            "What is 6 * 7?",
            *on(server),
            "--json",
            "--set",
            "verifier=compare",
            "--set",
            "plan=false",
        ]
        arguments += ["--set", "reflect=false", "--set", 'paths=["reason", "reason"]', "--set", "max_rounds=1"]
        arguments += ["--set", "adapter=plain", "--set", "quorum=3"]
        server.script = lambda messages: f"Answer: {server.requests}"
        other = ["--verifier-model", "openai/test-model", "--verifier-api-base", judge.api_base]
        status, told, _ = call(*arguments, *other)
        assert (status, server.requests, judge.requests) == (0, 2, 2)
        assert json.loads(told)["usage"]["calls"] == 4
        status, _, _ = call(*arguments, *other, "--max-calls", "3", "--set", "executor_stage={temperature=0.9}")
        assert (server.requests, judge.requests) == (4, 3)


def test_money_is_a_limit(call: Any) -> None:
    with LocalEngine("Answer: 42") as server:
        limits = ["--max-usd", "0.000001", "--prices", "1.0,2.0"]
        status, _, told = call("solve", "What is 6 * 7?", *on(server), *limits)
        assert (status, server.requests) == (3, 0)
        assert "USD" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "lazy"], ["lazy"]),
        (["--preset", "fast", "--settings", "mine.toml"], ["--settings and --preset exclude each other"]),
        (["--preset", "fast", "--program", "compiled"], ["--preset and --program exclude each other"]),
        (["--verifier-api-base", "http://127.0.0.1:9/v1"], ["need --verifier-model"]),
        (["--max-usd", "1"], ["--max-usd needs --prices"]),
        (["--prices", "cheap"], ["--prices cheap", "0.15,0.60"]),
        (["--prices", "1,-2"], ["--prices 1,-2"]),
        (["--effort", "heroic"], ["heroic"]),
    ],
)
def test_options_that_cannot_be_are_explained(call: Any, arguments: list[str], words: list[str]) -> None:
    with LocalEngine("Answer: 42") as server:
        status, _, told = call("solve", "What is 6 * 7?", *on(server), *arguments)
        assert (status, server.requests) == (2, 0)
    for word in words:
        assert word in told
