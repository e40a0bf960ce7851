"""Compiled pipelines in a real MLflow registry (SQLite): loaded and asked in a fresh process, crowned only on proof."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from compiled import compiled
from local_engine import LocalEngine

from coda.data.examples import Benchmark, Example
from coda.errors import RunError, TrackingError, UsageError
from coda.experiments.champion import first_champion
from coda.experiments.registry import CODE, Registration, default_name, register, write_model
from coda.experiments.tracking import Tracker
from coda.optimize.artifact import BenchmarkReference, Gain, Manifest, Policy, load, save
from coda.optimize.evaluate import EvaluationConfig, evaluate
from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import Settings
from coda.program.types import Problem

if TYPE_CHECKING:
    from mlflow import MlflowClient

SECRET = "sk-very-secret-value"
WORDS = BenchmarkReference(name="words", digest="d")
FRESH = """
import json, sys, mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
rows = pandas.DataFrame({"problem": ["What is 6 * 7?", "And 40 + 2?"]})
json.dump(model.predict(rows).to_dict("records"), sys.stdout)
"""


def gain(low: float, p: float, split: str = "test") -> Gain:
    interval = (low, 0.3)
    return Gain(against="baseline", split=split, n=60, difference=0.1, ci95=interval, gained=9, lost=1, p=p)


PROVEN = Manifest(model="openai/test-model", profile="generic", benchmark=WORDS, gains=(gain(0.02, 0.01),))
UNPROVEN = PROVEN.model_copy(update={"gains": (gain(-0.02, 0.3),)})


def artefact(folder: Path, *, quorum: int = 1, manifest: Manifest = PROVEN, tuned: str = "") -> Path:
    """A compiled pipeline that asks once for each problem; other quorums are other programs."""
    program = Coda(Settings(adapter="plain", plan=False, paths=("reason",), quorum=quorum, reflect=False, max_rounds=1))
    if tuned:
        reason = program.executor.reason
        reason.signature = reason.signature.with_instructions(tuned)
    save(program, folder, manifest=manifest, policy=Policy())
    return folder


def registered(store: Path, folder: Path, **options: Any) -> Registration:
    with Tracker(directory=store).run(f"register {folder.name}") as run:
        return register(folder, run, **options)


def evaluated(folder: Path, run_dir: Path, right: int, n: int = 20) -> Path:
    """Results of an evaluation in which the Engine answers that many of the problems rightly."""
    examples = tuple(
        Example(id=f"p{i}", problem=Problem(text=f"Name the number {i}."), answer=str(i), split="test")
        for i in range(n)
    )

    def reply(messages: list[dict[str, Any]]) -> str:
        number = int(messages[-1]["content"].split("Name the number ")[1].split(".")[0])
        return f"Answer: {number if number < right else -1}"

    with LocalEngine(reply) as server:
        config = EngineConfig(model="openai/test-model", api_base=server.api_base)
        with Engine(config) as engine:
            benchmark = Benchmark(name="numbers", examples=examples, digest="d", split="test")
            evaluate(load(folder, engine=engine), benchmark, EvaluationConfig(), run_dir=run_dir)
    return run_dir


# The model


def test_registered_pipeline_loads_and_answers_in_a_fresh_process(store: Path, tmp_path: Path) -> None:
    made = registered(store, artefact(tmp_path / "art", tuned="Think of the answer."), name="coda-fresh")
    with LocalEngine("It is so.\nAnswer: 42") as server:
        environment = {
            **os.environ,
            "MLFLOW_TRACKING_URI": f"sqlite:///{store / 'mlflow.db'}",
            "CODA_API_BASE": server.api_base,
            "CODA_API_KEY_ENV": "MY_KEY",
            "MY_KEY": SECRET,
        }
        command = [sys.executable, "-c", FRESH, "models:/coda-fresh@champion"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [(each["answer"], each["stopped"]) for each in answers] == [("42", None)] * 2
    assert "Think of the answer." in server.bodies[0]["messages"][0]["content"]
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}
    assert made.champion


@pytest.mark.slow
def test_exported_model_is_served_by_mlflow(tmp_path: Path) -> None:
    write_model(artefact(tmp_path / "art"), tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = ["-m", "mlflow", "models", "serve", "-m", str(tmp_path / "model"), "--env-manager", "local"]
    with LocalEngine("Answer: 42") as engine:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "CODA_API_BASE": engine.api_base}
        with subprocess.Popen(
            [sys.executable, *serve, "-p", str(port)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as server:
            try:
                while not _up(f"http://127.0.0.1:{port}/ping"):
                    assert server.poll() is None, "the server ended"
                    time.sleep(0.2)
                asked = json.dumps({"dataframe_records": [{"problem": "What is 6 * 7?"}]}).encode()
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/invocations", asked, {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request) as reply:
                    (answer,) = json.load(reply)["predictions"]
            finally:
                os.killpg(server.pid, signal.SIGKILL)
    assert (answer["answer"], answer["stopped"]) == ("42", None)


def _up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def test_model_holds_no_pickle_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.setenv("CODA_API_KEY_ENV", "MY_KEY")
    monkeypatch.setenv("CODA_API_BASE", "http://secret-host/v1")
    write_model(artefact(tmp_path / "art"), tmp_path / "model")
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert not [path for path in files if path.suffix in {".pkl", ".pickle"}]
    # A pickle of protocol 2 and above begins with 0x80; every file here is text.
    assert all(path.read_bytes()[:1] != b"\x80" and path.read_text("utf-8") is not None for path in files)
    written = b"".join(path.read_bytes() for path in files)
    assert SECRET.encode() not in written
    assert b"secret-host" not in written
    assert str(tmp_path).encode() not in written
    assert str(CODE.parent).encode() not in written
    assert (tmp_path / "model" / "artifacts" / "art" / "program.json").read_bytes() == (
        tmp_path / "art" / "program.json"
    ).read_bytes()


def test_model_replaces_a_model_and_nothing_else(tmp_path: Path) -> None:
    folder = artefact(tmp_path / "art")
    write_model(folder, tmp_path / "model")
    write_model(folder, tmp_path / "model")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other things than an MLflow model"):
        write_model(folder, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("model", "benchmark", "name"),
    [
        ("openai/Qwen3-32B", "math500", "coda-Qwen3-32B-math500"),
        ("/home/me/weights/Some Model.Q4.gguf", "/data/own sums.jsonl", "coda-Some-Model.Q4-own-sums"),
        ("embedded", "words", "coda-embedded-words"),
    ],
)
def test_name_tells_model_and_benchmark(model: str, benchmark: str, name: str) -> None:
    where = BenchmarkReference(name=benchmark, digest="d")
    assert default_name(Manifest(model=model, profile="generic", benchmark=where)) == name


# The champion


def test_unproven_gain_makes_no_champion(store: Path, client: MlflowClient, tmp_path: Path) -> None:
    made = registered(store, artefact(tmp_path / "art", manifest=UNPROVEN), name="coda-unproven")
    assert not made.champion
    assert "not proven better than the uncompiled pipeline: +10.0 points on 60 test problems" in made.why
    assert client.get_registered_model("coda-unproven").aliases == {}
    assert registered(store, tmp_path / "art", name="coda-unproven", force=True).champion
    assert client.get_registered_model("coda-unproven").aliases == {"champion": 1}


def test_gain_on_test_counts_before_one_on_validation() -> None:
    both = PROVEN.model_copy(update={"gains": (gain(0.05, 0.001, "validation"), gain(-0.05, 0.4, "test"))})
    assert not first_champion(both).champion
    assert first_champion(both.model_copy(update={"gains": both.gains[:1]})).champion
    assert not first_champion(both.model_copy(update={"gains": ()})).champion


def test_interval_and_p_must_both_prove_the_gain() -> None:
    assert not first_champion(PROVEN.model_copy(update={"gains": (gain(0.01, 0.12),)})).champion
    assert not first_champion(PROVEN.model_copy(update={"gains": (gain(0.0, 0.01),)})).champion


def test_alias_moves_only_to_what_beats_the_champion_on_the_same_problems(
    store: Path, client: MlflowClient, tmp_path: Path
) -> None:
    name = "coda-contest"
    folders = [artefact(tmp_path / f"art{n}", tuned=f"Version {n}.") for n in (1, 2, 3)]
    runs = [
        evaluated(folder, tmp_path / f"run{n}", right)
        for n, (folder, right) in enumerate(zip(folders, (8, 10, 19), strict=True))
    ]
    assert registered(store, folders[0], name=name, results=runs[0]).champion

    untested = registered(store, folders[1], name=name)
    assert (untested.version, untested.champion) == (2, False)
    assert "--results" in untested.why
    close = registered(store, folders[1], name=name, results=runs[1])
    assert (close.version, close.known, close.champion) == (2, True, False)
    assert close.why.startswith("It is not proven better than version 1: +10.0 points on 20 test problems")
    assert int(client.get_model_version_by_alias(name, "champion").version) == 1

    better = registered(store, folders[2], name=name, results=runs[2])
    assert better.champion
    assert better.why.startswith("It is proven better than version 1: +55.0 points on 20 test problems")
    assert int(client.get_model_version_by_alias(name, "champion").version) == 3
    assert not registered(store, folders[0], name=name, results=runs[0]).champion


def test_results_of_another_pipeline_are_refused(store: Path, tmp_path: Path) -> None:
    one, other = artefact(tmp_path / "one"), artefact(tmp_path / "other", tuned="Otherwise.")
    run_dir = evaluated(other, tmp_path / "run", right=3, n=3)
    with pytest.raises(RunError, match="holds results of another pipeline"):
        registered(store, one, results=run_dir)
    with pytest.raises(RunError, match="Give a run directory"):
        registered(store, one, results=tmp_path)


# The prompts


def test_tuned_prompts_are_registered_with_the_way_back(store: Path, client: MlflowClient, tmp_path: Path) -> None:
    made = registered(store, artefact(tmp_path / "art", tuned="Think hard."), name="coda-prompts")
    assert made.prompts == ("coda-prompts.executor.reason/1",)
    prompt = client.get_prompt_version("coda-prompts.executor.reason", "1")
    assert prompt.tags["coda.model"] == "models:/coda-prompts/1"
    run = client.get_run(prompt.tags["coda.run"])
    assert run.info.run_name == "register art"
    assert client.get_model_version("coda-prompts", "1").run_id == run.info.run_id
    linked = json.loads(run.data.tags["mlflow.linkedPrompts"])
    assert linked == [{"name": "coda-prompts.executor.reason", "version": "1"}]
    system, asked = prompt.template
    assert system["content"].startswith("Think hard.")
    assert "{{problem}}" in asked["content"]


def test_same_pipeline_is_registered_once(store: Path, client: MlflowClient, tmp_path: Path) -> None:
    folder = artefact(tmp_path / "art", tuned="Once.")
    first, again = (registered(store, folder, name="coda-once") for _ in range(2))
    assert (first.version, first.known) == (1, False)
    assert (again.version, again.known, again.champion, again.prompts) == (1, True, True, first.prompts)
    assert len(client.search_model_versions("name = 'coda-once'")) == 1


def test_every_tuned_prompt_and_only_those(store: Path, tmp_path: Path) -> None:
    save(compiled("fields"), tmp_path / "art", manifest=PROVEN, policy=Policy())
    made = registered(store, tmp_path / "art", name="coda-all")
    names = {each.rpartition("/")[0] for each in made.prompts}
    assert names == {f"coda-all.{name}" for name, _ in compiled().named_predictors()}
    assert registered(store, artefact(tmp_path / "plain"), name="coda-none").prompts == ()


# When it cannot be done


def test_store_that_is_down_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    folder = artefact(tmp_path / "art")
    tracker = Tracker("http://127.0.0.1:9", directory=tmp_path)
    with tracker.run("down") as run, pytest.raises(TrackingError, match="MLflow's store failed"):
        register(folder, run)


def test_name_that_mlflow_cannot_take_is_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--name a/b: use letters"):
        registered(store, artefact(tmp_path / "art"), name="a/b")
