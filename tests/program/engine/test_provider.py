"""Models that are reached through DSPy's own engines: counted, limited and repeated like all others."""

from __future__ import annotations

import dspy
import pytest
from asking import Connect, ask
from dspy.utils import exceptions
from local_engine import CONTEXT_OVERFLOW, RATE_LIMIT, RESET, SERVER_ERROR, UNAUTHORIZED, Answer, Fault, LocalEngine

from coda.errors import EngineError, UsageError
from coda.program.engine.provider import as_engine_error

REPLY = "<think>6 × 7</think>[[ ## answer ## ]]\n42"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "secret")


async def test_a_predictor_over_another_provider(connect: Connect) -> None:
    answer = Answer(REPLY, prompt_tokens=9, completion_tokens=8)
    with LocalEngine(answer, faults=[RATE_LIMIT, SERVER_ERROR, RESET]) as local:
        engine = connect(local, model="deepseek/test-model", api_key_env="SOME_KEY")
        await engine.acheck()
        with dspy.context(lm=engine.lm):
            assert (await dspy.Predict("question -> answer").acall(question="q")).answer == "42"
    total = engine.ledger.totals()
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (4, 9, 8)
    assert local.requests == 4
    assert local.headers[0]["authorization"] == "Bearer secret"


@pytest.mark.parametrize(("fault", "kind"), [(CONTEXT_OVERFLOW, "context"), (UNAUTHORIZED, "auth")])
async def test_its_faults_are_ours(connect: Connect, fault: Fault, kind: str) -> None:
    with LocalEngine(faults=lambda number, body: fault) as local:
        engine = connect(local, model="deepseek/test-model", api_key_env="SOME_KEY")
        with pytest.raises(EngineError) as caught:
            await ask(engine)
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value)
    assert local.requests == 1


async def test_a_missing_key(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY")
    with LocalEngine() as local:
        engine = connect(local, model="deepseek/test-model", api_key_env="SOME_KEY")
        with pytest.raises(UsageError, match="The variable SOME_KEY holds no key for deepseek/test-model"):
            await engine.acheck()


def test_what_the_error_says_is_kept() -> None:
    error = as_engine_error(exceptions.LMRateLimitError("slow down", status=429, retry_after=3.0))
    assert (error.kind, error.status, error.retry_after) == ("rate-limit", 429, 3.0)


def test_an_unknown_error_counts_as_the_nearest_known_one() -> None:
    class LMQueueFullError(exceptions.LMServerError):
        pass

    assert as_engine_error(LMQueueFullError("full")).kind == "server"
