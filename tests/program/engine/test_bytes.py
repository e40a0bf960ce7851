"""Whatever bytes a server sends, a caller gets a reply or one of our errors: through sockets, HTTP, JSON and DSPy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from local_engine import Fault, LocalEngine, garbage, noise

from coda.errors import CodaError
from coda.program.concurrency import run_sync
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.ask import Ask
from coda.program.engine.replies import Reply

HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: 1e999\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/9.9 999 ?\r\n\r\n",
]
replies = st.one_of(
    st.binary().map(noise),
    st.tuples(st.sampled_from(HEADS), st.binary()).map(lambda pair: noise(pair[0] + pair[1])),
    st.binary().map(garbage),
    st.text().map(lambda text: garbage(json.dumps({"choices": [{"message": {"content": text}}]}).encode())),
)
anything = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class Next:
    """The reply to the next request."""

    fault: Fault | None = None

    def __call__(self, number: int, body: dict[str, Any]) -> Fault | None:
        return self.fault


@pytest.fixture(scope="module")
def following() -> Next:
    return Next()


@pytest.fixture(scope="module")
def engine(following: Next) -> Iterator[Engine]:
    with LocalEngine("42", faults=following, keep=False) as local:
        config = EngineConfig(model="openai/test-model", api_base=local.api_base, max_retries=0, timeout=5)
        with Engine(config) as engine:
            yield engine
            total = engine.ledger.totals()
            assert total.calls == local.requests


@anything
@given(fault=replies)
def test_the_engine_gives_a_reply_or_an_error_of_ours(following: Next, engine: Engine, fault: Fault) -> None:
    following.fault = fault
    try:
        reply = run_sync(engine.ask(Ask.of("6 × 7?", None, {})))
    except CodaError:
        return
    assert isinstance(reply, Reply)


@anything
@given(fault=replies)
def test_a_predictor_adds_nothing_but_that_it_could_not_read_it(following: Next, engine: Engine, fault: Fault) -> None:
    following.fault = fault
    with dspy.context(lm=engine.lm, adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        try:
            prediction = dspy.Predict("question -> answer")(question="6 × 7?")
        except (CodaError, AdapterParseError):
            return
    assert isinstance(prediction.answer, str)
