"""When the hub refuses, is out of reach, or has changed: what the user is told. The hub is a local server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import datasets
import huggingface_hub.constants
import pytest

from coda.data import hub
from coda.data.benchmarks import load
from coda.errors import DataError

Answer = Callable[[int, str], None]


class _Refusing(BaseHTTPRequestHandler):
    """Answers every request with the same status and the hub's own error code."""

    status = 404
    code = ""

    def do_HEAD(self) -> None:
        self.send_response(self.status)
        self.send_header("X-Error-Code", self.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def local_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Answer]:
    """A hub on loopback, and how it answers."""

    class Handler(_Refusing):
        pass

    def answer(status: int, code: str) -> None:
        Handler.status, Handler.code = status, code

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield answer
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (
            401,
            "GatedRepo",
            r"hf:Idavidrein/gpqa:gpqa_diamond@633f5ee89ab8 is gated: .* Accept them at https://hugg.*gpqa",
        ),
        (403, "GatedRepo", "then log in with"),
        (404, "RepoNotFound", "does not exist, or not for you: private data sets need HF_TOKEN"),
        (404, "RevisionNotFound", "has lost this revision: the data set was moved or rewritten"),
    ],
)
def test_a_refusal_is_explained(local_hub: Answer, status: int, code: str, told: str) -> None:
    local_hub(status, code)
    with pytest.raises(DataError, match=told) as caught:
        load("gpqa-diamond")
    assert str(caught.value).endswith("A local copy can be given with --data-file.")


def test_without_a_network_the_user_is_told_so(local_hub: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"hf:openai/gsm8k:main@.* is not in the cache, and the hub cannot be reached"):
        load("gsm8k", split="test")
    with pytest.raises(DataError, match="cannot be reached"):
        load("hf:owner/name")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ValueError("BuilderConfig 'main' not found. Available: ['default']"),
            "has no split 'test' or no such configuration",
        ),
        (ValueError("Unknown split \"test\". Should be one of ['train']."), "has no split 'test'"),
        (RuntimeError("Dataset scripts are no longer supported"), "cannot be loaded: RuntimeError: Dataset scripts"),
        (TimeoutError("timed out"), "cannot be reached"),
    ],
)
def test_what_the_library_raises_is_explained(monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fails)
    with pytest.raises(DataError, match=told):
        list(hub.rows(hub.Source("openai/gsm8k"), "test"))


def test_a_source_names_itself() -> None:
    assert str(hub.Source("a/b")) == "hf:a/b"
    assert str(hub.Source("a/b", "c", "0123456789abcdef")) == "hf:a/b:c@0123456789ab"
