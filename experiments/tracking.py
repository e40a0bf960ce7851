"""MLflow: every evaluation and every compilation is a run. MLflow is imported only when it is used.

The default store is a SQLite file; a server does as well. Tracking never endangers what was paid for: when the store
fails, one warning says so, tracking stops, and the run directory has everything. Names of metrics: docs/tracking.md.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coda import __version__
from coda.errors import UsageError
from coda.experiments.figures import metrics_of, table
from coda.experiments.stories import Story, Storyteller
from coda.optimize.identity import flat, git_revision, without_password
from coda.optimize.records import Record, read_results
from coda.optimize.summary import Summary
from coda.program.events import watching
from coda.program.types import Solution

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger("coda.tracking")

T = TypeVar("T")

SERVERS = ("http", "https", "postgresql", "mysql", "mssql", "databricks")
"""Schemes of stores that are set up by others."""

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # stdout is for results
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # seven by default: minutes for a server that is down
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Set before MLflow is imported, unless the user has set them."""


class Tracker:
    """Where runs are tracked. Nothing is opened before the first run.

    Args:
        uri: An MLflow tracking URI; by default ``mlflow.db`` in ``directory``.
        directory: Where the default store and its artefacts go.
        experiment: The MLflow experiment.
        trace: The share of problems that are traced, from 0 to 1. A trace costs about 40 ms of the event loop's time.
        register: Whether what is compiled goes into the model registry (`coda.experiments.registry`).

    Raises:
        UsageError: The URI is of a kind that MLflow cannot use.

    Example:
        >>> with Tracker(directory=Path("runs")).run("words", run_dir=Path("runs/words")) as run:  # doctest: +SKIP
        ...     evaluate(program, benchmark, run_dir=Path("runs/words"), observer=run)
    """

    def __init__(
        self,
        uri: str | None = None,
        *,
        directory: Path,
        experiment: str = "coda",
        trace: float = 0.0,
        register: bool = False,
    ) -> None:
        self.uri = uri or f"sqlite:///{directory.resolve() / 'mlflow.db'}"
        self.experiment = experiment
        self.trace = trace
        self.register = register
        self._client: MlflowClient | None = None
        self._experiment_id = ""
        self._failed = False
        scheme = self.uri.partition(":")[0].partition("+")[0]
        if scheme not in (*SERVERS, "sqlite"):
            raise UsageError(
                f"--tracking-uri {self.uri}: MLflow cannot use it. Give sqlite:///PATH/mlflow.db or a server's address."
            )

    @contextmanager
    def run(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        run_dir: Path | None = None,
    ) -> Iterator[TrackedRun]:
        """Track the work in the block as one run.

        It ends as ``FINISHED``, as ``KILLED`` where the block is interrupted, and as ``FAILED`` on other exceptions.

        Args:
            name: The run's name.
            params: What was set; nested values get dotted names.
            tags: What to find the run by.
            run_dir: A run directory; what it holds at the end of the block is logged, however the block ends.
        """
        self._open()
        tags = {"coda.version": __version__, "mlflow.source.name": "coda", **(tags or {})}
        if revision := git_revision():
            tags["mlflow.source.git.commit"] = revision
        with ExitStack() as stack:
            run = stack.enter_context(self._run(name, params, tags, run_dir))
            if self.trace > 0:
                stack.enter_context(watching(Storyteller(self.trace, run.tell)))
                stack.callback(self._try, "writing traces", lambda _: _flush_traces())
            yield run

    @contextmanager
    def _run(
        self, name: str, params: Mapping[str, Any] | None, tags: Mapping[str, Any], run_dir: Path | None
    ) -> Iterator[TrackedRun]:
        texts = {key: str(value) for key, value in tags.items()}
        made = self._try(
            "creating a run", lambda client: client.create_run(self._experiment_id, tags=texts, run_name=name)
        )
        run = TrackedRun(self, None if made is None else made.info.run_id)
        run.params(params or {})
        status = "FAILED"
        try:
            yield run
            status = "FINISHED"
        except (KeyboardInterrupt, asyncio.CancelledError):
            status = "KILLED"
            raise
        finally:
            if run_dir is not None:
                run.directory(run_dir)
            run.end(status)

    def _open(self) -> None:
        """Import MLflow and find or make the experiment; one process at a time, since a store cannot be made twice."""
        if self._client is not None or self._failed:
            return
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        database = _database(self.uri)
        artifacts = None if database is None else f"file://{database.parent / 'mlartifacts'}"
        try:
            with _alone(database):
                import mlflow

                mlflow.set_tracking_uri(self.uri)  # traces know no other way
                client = mlflow.MlflowClient(tracking_uri=self.uri)
                self._experiment_id = _experiment(client, self.experiment, artifacts)
            self._client = client
        except Exception as error:  # MLflow raises whatever its database or transport raises
            self._fail("opening it", error)

    def _try(self, doing: str, action: Callable[[MlflowClient], T]) -> T | None:
        """Do something with the store; ``None`` where it has failed, now or before."""
        if self._client is None or self._failed:
            return None
        try:
            return action(self._client)
        except Exception as error:  # MLflow raises whatever its database or transport raises
            self._fail(doing, error)
            return None

    def _fail(self, doing: str, error: Exception) -> None:
        self._failed = True
        shown = without_password(self.uri) or ""
        reason = " ".join(str(error).split()).replace(self.uri.rstrip("/"), shown)[:300]
        log.warning(
            "MLflow at %s failed while %s: %s. Tracking stops here; the run directory has everything.",
            shown,
            doing,
            reason,
        )


class TrackedRun:
    """A run in the making. It is an `Observer` of evaluations, whose figures it logs.

    Attributes:
        id: MLflow's id of the run; ``None`` where the store has failed.
    """

    def __init__(self, tracker: Tracker, id: str | None) -> None:
        self._tracker = tracker
        self.id = id

    def metrics(self, values: Mapping[str, float], *, step: int = 0) -> None:
        """Log metrics."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        found = [Metric(name, float(value), now, step) for name, value in values.items()]
        for part in _parts(found, 1000):
            self._log("logging metrics", lambda client, id, part=part: client.log_batch(id, metrics=part))

    def params(self, values: Mapping[str, Any]) -> None:
        """Log parameters; nested values get dotted names."""
        from mlflow.entities import Param

        found = [Param(name[:250], str(value)[:6000]) for name, value in flat(values).items()]
        for part in _parts(found, 100):
            self._log("logging parameters", lambda client, id, part=part: client.log_batch(id, params=part))

    def tags(self, values: Mapping[str, Any]) -> None:
        """Set tags."""
        from mlflow.entities import RunTag

        found = [RunTag(name, str(value)) for name, value in values.items()]
        self._log("setting tags", lambda client, id: client.log_batch(id, tags=found))

    def artifact(self, path: Path, folder: str | None = None) -> None:
        """Log a file, or a folder with all that is in it (under its own name, unless ``folder`` says otherwise)."""
        if path.is_dir():
            self._log("logging a folder", lambda client, id: client.log_artifacts(id, str(path), folder or path.name))
        else:
            self._log("logging a file", lambda client, id: client.log_artifact(id, str(path), folder))

    def dataset(self, name: str, digest: str, *, source: str, context: str = "evaluation") -> None:
        """Log which data the run used.

        Args:
            name: The benchmark.
            digest: Of its content; MLflow keeps 36 characters.
            source: Where it comes from.
            context: What it was used for.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag

        data = Dataset(name=name, digest=digest[:36], source_type="coda", source=source)
        used = DatasetInput(dataset=data, tags=[InputTag("mlflow.data.context", context)])
        self._log("logging the data", lambda client, id: client.log_inputs(id, [used]))

    def directory(self, run_dir: Path) -> None:
        """Log a run directory: its configuration, summary and ledger, and a table of its results."""
        for name in ("config.json", "summary.json", "calls.jsonl"):
            if (run_dir / name).exists():
                self.artifact(run_dir / name)
        if (run_dir / "results.jsonl").exists():
            columns = table(read_results(run_dir))
            self._log("logging the results", lambda client, id: client.log_table(id, columns, "results.json"))

    @contextmanager
    def child(
        self,
        name: str,
        *,
        params: Mapping[str, Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        run_dir: Path | None = None,
    ) -> Iterator[TrackedRun]:
        """Track a part of the work, such as one candidate, as a run under this one; see `Tracker.run`."""
        with self._tracker._run(name, params, {"mlflow.parentRunId": self.id, **(tags or {})}, run_dir) as run:
            yield run

    def end(self, status: str) -> None:
        """End the run: ``FINISHED``, ``FAILED`` or ``KILLED``."""
        self._log("ending the run", lambda client, id: client.set_terminated(id, status))

    def tell(self, story: Story, solution: Solution, end: int) -> None:
        """Log a problem's story as one trace."""
        self._log("logging a trace", lambda _, id: _trace(story, solution, end, id, self._tracker._experiment_id))

    def on_start(self, total: int, finished: int) -> None:
        """An evaluation begins."""
        self.tags({"coda.planned": total, "coda.resumed": finished > 0})

    def on_result(self, record: Record) -> None:
        """Leave the store alone while the Engine is at work: it would hold up the event loop."""

    def on_end(self, summary: Summary) -> None:
        """An evaluation has ended: log its figures, and which data it used."""
        self.metrics(metrics_of(summary))
        for point in summary.gap.effort if summary.gap is not None else ():
            self.metrics({"effort/solved": point.solved}, step=point.tokens)
        tags = {"coda.model": summary.model, "coda.benchmark": summary.benchmark, "coda.program": summary.program}
        if summary.stopped is not None:
            tags["coda.stopped"] = summary.stopped.reason
        self.tags(tags)
        self.dataset(summary.benchmark, summary.digest, source=f"{summary.benchmark}/{summary.split}")

    def act(self, doing: str, action: Callable[[MlflowClient, str], T]) -> T | None:
        """Do something with the store and this run's id; ``None`` where the store has failed, now or before.

        Args:
            doing: What it is, for the warning.
            action: Does it.
        """
        run_id = self.id
        return None if run_id is None else self._tracker._try(doing, lambda client: action(client, run_id))

    def _log(self, doing: str, action: Callable[..., object]) -> None:
        self.act(doing, action)


def _experiment(client: MlflowClient, name: str, artifacts: str | None) -> str:
    """The id of an experiment, made if need be; somebody else may make it at the same time on the same server."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, artifact_location=artifacts))
        except MlflowException:
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)


def _database(uri: str) -> Path | None:
    """The file of a SQLite store; ``None`` for a server."""
    scheme, _, path = uri.partition(":///")
    return Path(path).resolve() if scheme.partition("+")[0] == "sqlite" else None


@contextmanager
def _alone(database: Path | None) -> Iterator[None]:
    """Keep other processes from opening the same database file meanwhile."""
    if database is None:
        yield
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f".{database.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _trace(story: Story, solution: Solution, end: int, run_id: str, experiment_id: str) -> None:
    import mlflow

    root = mlflow.start_span_no_context(
        "problem",
        span_type="CHAIN",
        inputs={"sample": story.sample, **story.problem.model_dump(mode="json")},
        metadata={"mlflow.sourceRun": run_id},
        experiment_id=experiment_id,
        start_time_ns=story.start,
    )
    for span in story.spans:
        child = mlflow.start_span_no_context(span.name, parent_span=root, start_time_ns=span.start)
        child.end(outputs=span.output, end_time_ns=span.end)
    outputs = solution.model_dump(mode="json", include={"answer", "confidence", "early_exit", "stopped", "usage"})
    root.end(outputs=outputs, end_time_ns=end)


def _flush_traces() -> None:
    import mlflow

    mlflow.flush_trace_async_logging()


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
