"""What the Engine receives from the pipeline, over HTTP, is what the exported prompts give."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import dspy
import pytest
from compiled import NASTY, compiled
from exported import jinja_reader, markdown_reader, messages_reader, python_module, python_reader
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from local_engine import RATE_LIMIT, LocalEngine

from coda.optimize.export import export
from coda.program.adapters import adapter_for
from coda.program.concurrency import run_sync
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import AdapterStyle, Settings
from coda.program.types import Problem

STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)

texts = st.text(max_size=40) | st.sampled_from(["{{ x }}", "{%", "a\r\nb", "[[ ## answer ## ]]", "🙂", NASTY])


@pytest.fixture(scope="module")
def server() -> Iterator[LocalEngine]:
    with LocalEngine("Answer: 42") as running:
        yield running


@contextmanager
def opened(server: LocalEngine, **config: Any) -> Iterator[Engine]:
    with Engine(EngineConfig(model="openai/test-model", api_base=server.api_base, **config)) as engine:
        yield engine


def sent(server: LocalEngine, program: Coda, name: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """The body that the server receives when a stage asks through one of its predictors."""
    assert program.engine is not None
    stage, _, attribute = name.partition(".")
    module = getattr(program, stage)
    with dspy.context(lm=program.engine.lm, adapter=adapter_for(program.settings.adapter)):
        run_sync(module.ask(getattr(module, attribute), **inputs))
    return server.bodies.pop()


def inputs_of(predictor: dspy.Predict, text: str, other: str) -> dict[str, Any]:
    names = predictor.signature.input_fields
    numbers = {"number_of_paths": 3} if "number_of_paths" in names else {}
    return dict.fromkeys(names, other) | {"problem": text} | numbers


@pytest.mark.parametrize("demos", [True, False], ids=["demos", "no-demos"])
@pytest.mark.parametrize("style", STYLES)
def test_every_predictor_sends_what_every_format_gives(
    server: LocalEngine, style: AdapterStyle, demos: bool, tmp_path: Path
) -> None:
    program = compiled(style, demos=demos)
    assert all(bool(predictor.demos) is demos for _, predictor in program.named_predictors())
    with opened(server) as engine:
        check_parity(server, with_engine(program, engine), tmp_path)


@pytest.mark.parametrize("demos", [True, False], ids=["demos", "no-demos"])
@pytest.mark.parametrize(
    ("profile", "effort"),
    [("qwen3", "off"), ("qwen3", "on"), ("deepseek-r1", None), ("gpt-oss", "high"), ("openai-reasoning", None)],
)
def test_what_a_profile_adds_is_in_the_export(
    server: LocalEngine, profile: str, effort: str | None, demos: bool, tmp_path: Path
) -> None:
    with opened(server, profile=profile, effort=effort) as engine:
        check_parity(server, with_engine(compiled("plain", demos=demos), engine), tmp_path)


def with_engine(program: Coda, engine: Engine) -> Coda:
    program.engine = engine
    return program


def check_parity(server: LocalEngine, program: Coda, folder: Path) -> None:
    """Compare, for every predictor and format, what the server receives with what the export gives."""
    for format in ("messages", "jinja", "markdown", "python"):
        export(program, format, folder)
    readers = {
        name: (
            messages_reader(folder / f"{name}.json"),
            jinja_reader(folder / f"{name}.jinja"),
            markdown_reader(folder / f"{name}.md"),
            python_reader(folder / "pipeline.py", name),
        )
        for name, _ in program.named_predictors()
    }

    @given(text=texts.filter(str.strip), other=texts)
    @examples(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    def compare(text: str, other: str) -> None:
        for name, predictor in program.named_predictors():
            inputs = inputs_of(predictor, text, other)
            body = sent(server, program, name, inputs)
            for read in readers[name]:
                assert read(**inputs) == body["messages"]
            stated = json.loads((folder / f"{name}.json").read_text("utf-8"))["parameters"]
            assert {"model": "test-model", "messages": body["messages"], **stated} == body

    compare()


# The standalone file against the pipeline itself


class Model:
    """A model whose attempts disagree, so that every stage is asked."""

    def __init__(self, style: AdapterStyle, *, reconciled: str) -> None:
        self.style = style
        self.reconciled = reconciled

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        system, asked = str(messages[0]["content"]), str(messages[-1]["content"])
        if "devise several distinct ways" in system:
            paths = [{"mode": "reason", "approach": f"idea {n}", "steps": ["a", "b"]} for n in (1, 2)]
            lines = "\n".join(f"{n}. reason: idea {n}" for n in (1, 2))
            return lines if self.style == "plain" else self.write(difficulty="hard", paths=json.dumps(paths))
        if "Compare the attempts" in system:
            return self.write(inconsistencies="One errs.", answer=self.reconciled)
        if "decide which one is right" in system:
            second_is_two = asked.rfind("Answer: 2") > asked.rfind("Answer: 1")
            return self.write(reasoning="Checked.", better="second" if second_is_two else "first")
        return self.write(reasoning="Long thoughts. " * 200, answer="1" if "idea 1" in asked else "2")

    def write(self, **fields: str) -> str:
        if self.style == "json":
            return json.dumps({name: json.loads(value) if name == "paths" else value for name, value in fields.items()})
        if self.style == "plain":
            before, last = fields.values()
            return f"{before}\nAnswer: {last}"
        return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())


@pytest.mark.parametrize(("reconciled", "answer", "calls"), [("2", "2", 4), ("3", "2", 8)], ids=["vote", "compare"])
@pytest.mark.parametrize("style", STYLES)
def test_standalone_file_asks_what_the_pipeline_asks(
    style: AdapterStyle, reconciled: str, answer: str, calls: int, tmp_path: Path
) -> None:
    settings = Settings(adapter=style, paths=("reason", "reason"), max_paths=2, straight=False, max_rounds=1)
    problem = Problem(text="One or two? {{ x }} 🙂")
    with LocalEngine(Model(style, reconciled=reconciled)) as server:
        config = EngineConfig(model="openai/test-model", api_base=server.api_base)
        with Engine(config) as engine:
            program = Coda(settings, engine=engine)
            assert program.solve(problem).answer == answer
            pipeline = python_module(export(program, "python", tmp_path)[0])
        asked, server.bodies = server.bodies, []
        found, _ = pipeline.solve(pipeline.Server(server.api_base, "test-model"), problem.text)
    assert found == answer
    assert ordered(server.bodies) == ordered(asked)
    assert len(asked) == calls


def ordered(bodies: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return sorted((json.dumps(body["messages"], sort_keys=True), body["temperature"]) for body in bodies)


def start(file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the file with nothing but the standard library."""
    command = [sys.executable, "-I", "-S", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"KEY": "sk-1"})


def run(file: Path, *arguments: str) -> Any:
    done = start(file, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (written,) = export(compiled(demos=False, plan=False, paths=("code", "code")), "python", tmp_path / "solve.py")
    assert written == tmp_path / "solve.py"
    return written


def test_standalone_file_runs_programs_only_when_it_is_told_to(file: Path) -> None:
    reply = "[[ ## answer ## ]]\n$42$.\n\n[[ ## program ## ]]\n```python\nprint(6 * 7)\n```"
    with LocalEngine(reply) as server:
        where = ("--api-base", server.api_base, "--model", "test-model")
        words = run(file, "What is 6 * 7?", *where)
        code = run(file, "What is 6 * 7?", *where, "--unsafe-local-exec")
    assert words["answer"] == code["answer"] == "42"
    assert [each["code"] for each in words["attempts"]] == ["", ""]
    assert [each["code"] for each in code["attempts"]] == ["print(6 * 7)", "print(6 * 7)"]


def test_standalone_file_corrects_a_program_that_fails(file: Path) -> None:
    def script(messages: list[dict[str, Any]]) -> str:
        failed = "NameError" in messages[-1]["content"]
        return f"[[ ## program ## ]]\nprint({'42' if failed else 'answer'})"

    with LocalEngine(script) as server:
        found = run(file, "?", "--api-base", server.api_base, "--model", "test-model", "--unsafe-local-exec")
    assert found["answer"] == "42"
    assert server.requests == 4


def test_standalone_file_asks_one_prompt_with_its_sampling_and_the_key(file: Path) -> None:
    with LocalEngine("[[ ## program ## ]]\nprint(1)") as server:
        where = ("--api-base", server.api_base, "--model", "test-model", "--api-key-env", "KEY")
        found = run(file, "?", *where, "--prompt", "executor.code", "--input", "approach=by a = b")
    (body,) = server.bodies
    assert found == {"program": "print(1)"}
    assert (body["temperature"], body["max_tokens"]) == (0.2, 700)
    assert "by a = b" in body["messages"][-1]["content"]
    assert server.headers[0]["authorization"] == "Bearer sk-1"


def test_standalone_file_shows_messages_without_a_server(file: Path) -> None:
    shown = run(file, "What is 6 * 7?", "--model", "any", "--show", "executor.code")
    assert [each["role"] for each in shown] == ["system", "user"]
    assert "What is 6 * 7?" in shown[-1]["content"]


def test_standalone_file_asks_a_busy_server_again(file: Path) -> None:
    with LocalEngine("[[ ## program ## ]]\nprint(1)", faults=[RATE_LIMIT]) as server:
        where = ("--api-base", server.api_base, "--model", "test-model")
        assert run(file, "?", *where, "--prompt", "executor.code", "--input", "approach=") == {"program": "print(1)"}
    assert server.requests == 2


@pytest.mark.parametrize(
    ("style", "reply", "fields"),
    [
        ("fields", "[[ ## reasoning ## ]]\nso\n[[ ## answer ## ]]\n 4\n[[ ## completed ## ]]", ("so", "4")),
        ("fields", "I think\nso.\nFinal answer: 4", ("I think\nso.", "4")),
        ("json", 'Sure: {"reasoning": "so", "answer": "4"}', ("so", "4")),
        ("json", '{"reasoning": "so", "answer": 4}', ("so", "4")),
        ("json", "{broken\nAnswer: 4", ("{broken", "4")),
        ("plain", "so\n**Answer:** 4", ("so", "4")),
        ("plain", "4", (None, "4")),
    ],
)
def test_standalone_file_reads_what_a_reply_plainly_holds(
    style: AdapterStyle, reply: str, fields: tuple[str | None, str], tmp_path: Path
) -> None:
    pipeline = python_module(export(compiled(style, demos=False), "python", tmp_path)[0])
    found = pipeline.read("executor.reason", reply)
    assert (found.get("reasoning"), found["answer"]) == fields


def test_standalone_file_says_in_a_line_what_is_wrong(file: Path) -> None:
    unset = start(file, "?", "--model", "m", "--api-key-env", "NO_SUCH_KEY")
    assert unset.stderr.endswith("--api-key-env NO_SUCH_KEY: the variable is not set\n")
    missing = start(file, "?", "--model", "m", "--show", "executor.repair")
    assert missing.stderr == "The prompt needs another input: failed_program.\n"
    refused = start(file, "?", "--model", "m", "--api-base", "http://127.0.0.1:9/v1")
    assert refused.stderr == "http://127.0.0.1:9/v1: <urlopen error [Errno 111] Connection refused>\n"
