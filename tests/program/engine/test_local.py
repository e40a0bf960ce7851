"""The embedded Engine for real: it answers, there is one of it, and it ends when it should."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from coda.errors import UsageError
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.local import EmbeddedServer, embedded_server
from coda.program.engine.weights import weights_path

pytestmark = [pytest.mark.embedded, pytest.mark.xdist_group("embedded")]


@pytest.fixture(scope="module")
def file() -> Path:
    try:
        return weights_path("embedded")
    except UsageError as absent:
        pytest.skip(str(absent))


def models(api_base: str) -> list[str]:
    with urllib.request.urlopen(f"{api_base}/models", timeout=10) as reply:
        return [item["id"] for item in json.load(reply)["data"]]


def test_it_answers_and_counts_its_tokens(file: Path) -> None:
    with Engine(EngineConfig(model="embedded", seed=1)) as engine:
        engine.check()
        [text] = engine.lm("Say hello.", max_tokens=8)
        usage = engine.ledger.totals()
    assert text
    assert usage.calls == 1
    assert 1 <= usage.completion_tokens <= 8
    assert usage.prompt_tokens > 3


def test_the_same_seed_gives_the_same_text(file: Path) -> None:
    texts = []
    for _ in range(2):
        with Engine(EngineConfig(model="embedded", seed=7)) as engine:
            texts.append(engine.lm("Tell me about apples.", max_tokens=12, temperature=0.7)[0])
    assert texts[0] == texts[1]


def test_there_is_one_server_for_a_file_and_eight_slots(file: Path) -> None:
    server = embedded_server("embedded")
    assert embedded_server(str(file)) is server
    assert server.slots == 8
    assert server.context_per_slot == 4096
    assert models(server.api_base) == [server.model]


def test_a_closed_server_is_gone_and_the_next_use_starts_another(file: Path) -> None:
    first = EmbeddedServer(file, slots=1)
    assert first.running
    first.close()
    first.close()
    assert not first.running
    with pytest.raises(OSError):
        models(first.api_base)


def test_an_address_in_use_is_said_to_be(file: Path) -> None:
    server = embedded_server("embedded")
    port = int(server.address.rpartition(":")[2])
    with pytest.raises(UsageError, match="cannot start"):
        EmbeddedServer(file, slots=1, port=port)


def test_serve_prints_its_address_and_ends_on_interrupt(file: Path) -> None:
    command = [sys.executable, "-m", "coda.cli", "engine", "serve", "--port", "0", "--slots", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert models(address)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    process.communicate()
