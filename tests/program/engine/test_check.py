"""Before the work begins: can the Engine be asked? If not, one clear sentence says what to mend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from asking import Connect, ask
from local_engine import LocalEngine

from coda.errors import EngineError, UsageError
from coda.program.engine import Engine, EngineConfig


async def test_all_is_well(connect: Connect) -> None:
    with LocalEngine(models=["other", "test-model"]) as local:
        await connect(local).acheck()
    assert local.requests == 0, "checking costs nothing"


async def test_a_model_may_be_named_without_its_tag(connect: Connect) -> None:
    with LocalEngine(models=["qwen3:8b"]) as local:
        await connect(local, model="openai/qwen3").acheck()


async def test_nothing_answers(connect: Connect) -> None:
    with LocalEngine() as local:
        pass
    with pytest.raises(UsageError, match=rf"Nothing answers at {local.api_base} .* Check --api-base\."):
        await connect(local).acheck()


async def test_it_is_no_openai_server(connect: Connect) -> None:
    with LocalEngine() as local:
        engine = connect(local, api_base=local.api_base.removesuffix("/v1"))
        with pytest.raises(UsageError, match=r"is no OpenAI-compatible server: .* most end in /v1"):
            await engine.acheck()


async def test_the_model_is_unknown(connect: Connect) -> None:
    with LocalEngine(models=["small", "large"]) as local:
        engine = connect(local)
        with pytest.raises(UsageError, match=r"has no model 'test-model'\. It serves: small, large\."):
            await engine.acheck()


async def test_the_keys_variable_is_not_set(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with LocalEngine() as local:
        engine = connect(local, api_key_env="SOME_KEY")
        for action in (engine.acheck(), ask(engine)):
            with pytest.raises(UsageError, match=r"The variable SOME_KEY holds no key for http.*: export SOME_KEY=…"):
                await action
        assert local.requests == 0
        monkeypatch.setenv("SOME_KEY", "k\nX-Evil: 1")
        with pytest.raises(UsageError, match="has characters that no key has"):
            await engine.acheck()


async def test_the_key_is_sent_and_read_anew_for_every_request(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalEngine() as local:
        engine = connect(local, api_key_env="SOME_KEY")
        for key in ("first", "second"):
            monkeypatch.setenv("SOME_KEY", key)
            await ask(engine, key)
    assert [headers["authorization"] for headers in local.headers] == ["Bearer first", "Bearer second"]


async def test_openais_own_server_wants_its_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    engine = Engine(EngineConfig(model="openai/gpt-5-mini"))
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY holds no key for https://api\.openai\.com/v1"):
        await engine.acheck()
    await engine.aclose()


@pytest.mark.parametrize("base", ["127.0.0.1:8000", "ftp://host/v1", "http://", "nonsense", "http://[::1"])
def test_an_address_that_is_none(base: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--api-base {base}: give an address such as http://")):
        Engine(EngineConfig(model="openai/test-model", api_base=base))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": "nonsense"}, "--model nonsense: no such model. Give embedded, a GGUF file, openai/NAME"),
        ({"profile": "nonsense"}, "There is no profile 'nonsense'"),
        ({"effort": "high"}, "has no level of effort 'high'"),
    ],
)
def test_a_configuration_that_cannot_work(config: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Engine(EngineConfig(**{"model": "embedded", **config}))


async def test_weights_that_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODA_CACHE_DIR", str(tmp_path))
    engine = Engine(EngineConfig())
    with pytest.raises(UsageError, match="coda engine pull"):
        await engine.acheck()
    with pytest.raises(UsageError, match="coda engine pull"):
        await ask(engine)
    await engine.aclose()


async def test_a_wrong_key(connect: Connect) -> None:
    with LocalEngine(key="right") as local:
        engine = connect(local)
        with pytest.raises(EngineError, match=r"answered 401: .* name its variable with --api-key-env\.") as caught:
            await engine.acheck()
    assert caught.value.kind == "auth"
