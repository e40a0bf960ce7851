"""What a few requests find out about a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from local_engine import Answer, Fault, LocalEngine

from coda.errors import UsageError
from coda.program.engine import EngineConfig
from coda.program.engine.ledger import Ledger
from coda.program.engine.probe import Findings, probe
from coda.program.engine.profiles import load_profile
from coda.program.engine.wire import read_context


def obedient(messages: list[dict[str, Any]]) -> str:
    """A model that keeps to every format and thinks before it answers."""
    prompt = json.dumps(messages)
    if "17 + 25" in prompt:
        return "<think>17 + 25</think>42"
    if "[[ ## capital ## ]]" in prompt:
        return "<think>France</think>[[ ## reason ## ]]\nIt is.\n\n[[ ## capital ## ]]\nParis\n\n[[ ## completed ## ]]"
    if "France" in prompt:
        return '<think>France</think>{"reason": "It is.", "capital": "Paris"}'
    return "<think>well</think>fine"


class Server:
    """Heeds effort, the template's switch and logprobs."""

    def __call__(self, number: int, body: dict[str, Any]) -> Fault | None:
        if body.get("reasoning_effort") == "low":
            return Fault("low", answer=Answer("<think>17</think>17"))
        if body.get("reasoning_effort") == "high":
            return Fault("high", answer=Answer("<think>2 3 5 7 11 13 17 19 23</think>17"))
        if body.get("chat_template_kwargs") == {"enable_thinking": False}:
            return Fault("off", answer=Answer("43"))
        return None


def config(local: LocalEngine, **more: Any) -> EngineConfig:
    return EngineConfig(model="openai/test-model", api_base=local.api_base, **more)


async def test_a_capable_server(tmp_path: Path) -> None:
    with LocalEngine(obedient, faults=Server()) as local:
        local.details = {"max_model_len": 16384}
        findings = await probe(config(local), ledger=Ledger(tmp_path / "calls.jsonl"))
    assert findings.answers
    assert findings.thinking == "tags"
    assert findings.context == 16384
    assert (findings.seed, findings.effort, findings.thinking_switch) == ("yes", "yes", "yes")
    assert findings.logprobs == "no"
    assert findings.adapters[:2] == ("fields", "json")
    assert findings.usage.calls == local.requests <= 10
    assert findings.conflicts == ("the server's context is 16384 tokens, the profile's 32768",)


async def test_a_server_that_rejects_all_it_does_not_know() -> None:
    unknown = ["seed", "logprobs", "reasoning_effort", "chat_template_kwargs", "temperature"]
    with LocalEngine(obedient, unknown=unknown) as local:
        findings = await probe(config(local))
    assert (findings.seed, findings.logprobs, findings.effort, findings.thinking_switch) == ("rejected",) * 4
    assert findings.rejected == tuple(sorted(unknown))


async def test_a_model_that_keeps_to_no_format_and_does_not_think() -> None:
    with LocalEngine("Paris, I should say.") as local:
        findings = await probe(config(local, profile="qwen3"))
    assert not findings.answers
    assert (findings.thinking, findings.effort, findings.adapters) == ("none", "no", ("plain",))
    assert "profile qwen3 expects thinking, and none was seen" in findings.conflicts
    assert "adapter style fields does not parse; plain does" in findings.conflicts


async def test_what_was_found_is_a_profile(tmp_path: Path) -> None:
    with LocalEngine(obedient, faults=Server(), unknown=["temperature"]) as local:
        local.details = {"max_model_len": 16384}
        findings = await probe(config(local))
    (tmp_path / "found.toml").write_text(findings.as_toml(), "utf-8")
    profile = load_profile(str(tmp_path / "found.toml"))
    assert (profile.name, profile.thinking, profile.context) == ("test-model", "tags", 16384)
    assert not profile.takes_temperature
    assert not profile.settings().written_reasoning
    assert profile.settings().adapter == "fields"


async def test_a_server_that_is_not_there() -> None:
    with LocalEngine() as local:
        pass
    with pytest.raises(UsageError, match="Nothing answers"):
        await probe(config(local))


def test_findings_are_data() -> None:
    findings = Findings(model="m", answers=True)
    assert Findings.model_validate_json(findings.model_dump_json()) == findings


@pytest.mark.parametrize(
    ("entry", "context"),
    [
        ({"max_model_len": 8192}, 8192),
        ({"context_length": 4096}, 4096),
        ({"meta": {"n_ctx": 2048, "n_ctx_train": 8192}}, 2048),
        ({"meta": None}, None),
        ({"max_model_len": "many"}, None),
    ],
)
def test_servers_tell_their_context_in_several_ways(entry: dict[str, Any], context: int | None) -> None:
    assert read_context(json.dumps({"data": [{"id": "m", **entry}]}).encode(), "m") == context
