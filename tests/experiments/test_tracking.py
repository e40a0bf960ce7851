"""Runs in a real MLflow store (SQLite), read back with MLflow's own client."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coda import __version__
from coda.errors import UsageError
from coda.experiments.tracking import Tracker
from coda.optimize.records import Record
from coda.optimize.rundir import RunDirectory
from coda.optimize.summary import Facts, Stop, Summary, Tally
from coda.program.events import emit
from coda.program.types import Plan, Problem, Solution, Usage, Verdict

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

PROBLEM = Problem(text="What is 2 + 2?")


def records() -> list[Record]:
    right = Record(id="a", problem=PROBLEM, answer="4", expected="4", score=1.0, correct=True)
    wrong = Record(id="b", problem=PROBLEM, answer="5", expected="4", usage=Usage(calls=2, prompt_tokens=7))
    return [right, wrong]


def summary(stopped: Stop | None = None) -> Summary:
    tally = Tally(samples=1)
    for record in records():
        tally.add(record)
    facts = Facts(
        benchmark="words",
        split="test",
        digest="0123456789abcdef",
        model="m",
        program="Coda",
        sandbox="full",
        planned=2,
        seconds=1.5,
        stopped=stopped,
    )
    return tally.summary(facts, {})


def run_named(client: MlflowClient, name: str) -> Run:
    experiment = client.get_experiment_by_name("coda")
    found = client.search_runs([experiment.experiment_id], f"attributes.run_name = '{name}'")
    assert len(found) == 1
    return found[0]


def test_a_run_has_parameters_metrics_tags_and_files(store: Path, client: MlflowClient, tmp_path: Path) -> None:
    (tmp_path / "artefact").mkdir()
    (tmp_path / "artefact" / "program.json").write_text("{}")
    with Tracker(directory=store).run("all", params={"settings": {"quorum": 2}}, tags={"coda.kind": "eval"}) as run:
        run.metrics({"spent/calls": 3}, step=1)
        run.artifact(tmp_path / "artefact")
    found = run_named(client, "all")
    assert found.info.status == "FINISHED"
    assert found.data.params == {"settings.quorum": "2"}
    assert found.data.metrics == {"spent/calls": 3.0}
    assert found.data.tags["coda.kind"] == "eval"
    assert found.data.tags["coda.version"] == __version__
    assert [file.path for file in client.list_artifacts(found.info.run_id, "artefact")] == ["artefact/program.json"]
    assert found.info.artifact_uri.startswith(f"file://{store / 'mlartifacts'}")


def test_an_evaluation_is_logged_with_its_figures_data_and_files(
    store: Path, client: MlflowClient, tmp_path: Path
) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.claim({"samples": 1})
        for record in records():
            directory.append(record)
        directory.write_summary(summary())
    with Tracker(directory=store).run("eval", run_dir=tmp_path) as run:
        run.on_start(2, 0)
        run.on_end(summary())
    found = run_named(client, "eval")
    metrics = found.data.metrics
    assert (metrics["accuracy"], metrics["n"], metrics["calls"], metrics["tokens"]) == (0.5, 2.0, 2.0, 7.0)
    assert (metrics["accuracy/low"], metrics["accuracy/high"]) == summary().ci95
    assert (metrics["gap/final"], metrics["lost/engine"]) == (0.5, 1.0)
    assert found.data.tags["coda.benchmark"] == "words"
    (used,) = found.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("words", "0123456789abcdef")
    files = {file.path for file in client.list_artifacts(found.info.run_id)}
    assert files == {"config.json", "summary.json", "results.json"}
    table = json.loads(Path(client.download_artifacts(found.info.run_id, "results.json")).read_text())
    assert table["columns"][:4] == ["id", "sample", "correct", "score"]
    assert [row[0] for row in table["data"]] == ["a", "b"]


def test_children_stand_under_their_run(store: Path, client: MlflowClient) -> None:
    with Tracker(directory=store).run("parent") as run, run.child("candidate-1", params={"demos": 4}) as child:
        child.metrics({"accuracy": 0.5})
    parent, candidate = run_named(client, "parent"), run_named(client, "candidate-1")
    assert candidate.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert candidate.data.params == {"demos": "4"}
    assert candidate.info.status == "FINISHED"


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "KILLED"), (ValueError, "FAILED")])
def test_how_a_run_ended_shows(store: Path, client: MlflowClient, error: type[BaseException], status: str) -> None:
    def work() -> None:
        with Tracker(directory=store).run(f"ends {status}") as run:
            run.on_end(summary(Stop(reason="interrupted", message="…")))
            raise error

    with pytest.raises(error):
        work()
    found = run_named(client, f"ends {status}")
    assert found.info.status == status
    assert found.data.tags["coda.stopped"] == "interrupted"


def test_a_traced_problem_is_one_trace_with_a_span_for_each_stage(store: Path, client: MlflowClient) -> None:
    verdict = Verdict(answer="4", confidence=1.0)
    with Tracker(directory=store, trace=1.0).run("traced") as run:
        emit("problem", PROBLEM)
        emit("plan", PROBLEM, Plan(paths=()))
        emit("verdict", PROBLEM, verdict)
        emit("solution", PROBLEM, Solution(answer="4", verdict=verdict, plan=Plan(paths=())))
    experiment = client.get_experiment_by_name("coda")
    (trace,) = client.search_traces(locations=[experiment.experiment_id], run_id=run.id)
    assert [span.name for span in trace.data.spans] == ["problem", "plan", "verdict"]
    root = trace.data.spans[0]
    assert root.inputs["text"] == "What is 2 + 2?"
    assert root.outputs["answer"] == "4"
    assert all(
        root.start_time_ns <= span.start_time_ns <= span.end_time_ns <= root.end_time_ns for span in trace.data.spans
    )


def test_nothing_is_traced_by_default(store: Path, client: MlflowClient) -> None:
    with Tracker(directory=store).run("untraced") as run:
        emit("problem", PROBLEM)
        verdict = Verdict(answer="4", confidence=1.0)
        emit("solution", PROBLEM, Solution(answer="4", verdict=verdict, plan=Plan(paths=())))
    experiment = client.get_experiment_by_name("coda")
    assert client.search_traces(locations=[experiment.experiment_id], run_id=run.id) == []


def test_a_server_that_is_down_costs_one_warning_and_nothing_else(tmp_path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    tracker = Tracker("http://user:secret@127.0.0.1:9", directory=tmp_path)
    with caplog.at_level(logging.WARNING, "coda.tracking"), tracker.run("down", params={"a": 1}) as run:
        run.on_end(summary())
        with run.child("candidate"):
            pass
    assert run.id is None
    assert len(caplog.records) == 1
    assert "MLflow at http://127.0.0.1:9 failed while opening it" in caplog.text
    assert "the run directory has everything" in caplog.text
    assert "secret" not in caplog.text


def test_a_store_that_breaks_later_costs_one_warning(store: Path, tmp_path: Path, caplog) -> None:
    with caplog.at_level(logging.WARNING, "coda.tracking"), Tracker(directory=store).run("breaks") as run:
        run.artifact(tmp_path / "is not there")
        run.metrics({"after": 1.0})
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("uri", ["file:///tmp/mlruns", "mlruns", "ftp://host/x"])
def test_a_store_that_mlflow_cannot_use_is_refused_before_anything_is_spent(uri: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Give sqlite:///PATH/mlflow\.db or a server's address"):
        Tracker(uri, directory=tmp_path)


@pytest.mark.slow
def test_two_processes_initialise_one_store_at_once(tmp_path: Path) -> None:
    script = f"""
        import pathlib, sys
        from coda.experiments.tracking import Tracker
        with Tracker(directory=pathlib.Path({str(tmp_path)!r})).run(sys.argv[1]) as run:
            run.metrics({{"x": 1.0}})
        assert run.id
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    started = [subprocess.Popen([*command, f"run-{n}"], cwd=tmp_path, stderr=subprocess.PIPE) for n in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in started] == [(b"", 0)] * 2
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert len(client.search_runs([client.get_experiment_by_name("coda").experiment_id])) == 2


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a real MLflow server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    store = [
        "--backend-store-uri",
        f"sqlite:///{tmp_path / 'server.db'}",
        "--artifacts-destination",
        str(tmp_path / "a"),
    ]
    address = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command = [sys.executable, "-m", "mlflow", "server", *store, *address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        url = f"http://127.0.0.1:{port}"
        try:
            while not _healthy(url):
                assert run.poll() is None, "the server ended"
                time.sleep(0.2)
            yield url
        finally:
            os.killpg(run.pid, signal.SIGKILL)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health") as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_takes_runs_files_and_traces_and_nothing_goes_to_stdout(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.txt").write_text("kept")
    verdict = Verdict(answer="4", confidence=1.0)
    with Tracker(server, directory=tmp_path, trace=1.0).run("remote") as run, run.child("part"):
        run.on_end(summary())
        run.artifact(tmp_path / "note.txt")
        emit("problem", PROBLEM)
        emit("solution", PROBLEM, Solution(answer="4", verdict=verdict, plan=Plan(paths=())))
    assert capfd.readouterr().out == ""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=server)
    assert run.id is not None
    found = client.get_run(run.id)
    assert (found.info.status, found.data.metrics["accuracy"]) == ("FINISHED", 0.5)
    assert [file.path for file in client.list_artifacts(run.id)] == ["note.txt"]
    assert len(client.search_traces(locations=[found.info.experiment_id], run_id=run.id)) == 1


def test_importing_the_tracker_does_not_import_mlflow() -> None:
    script = "import sys, coda.experiments.tracking; assert not any(m.startswith('mlflow') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
