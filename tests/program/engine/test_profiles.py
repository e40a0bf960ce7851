"""Profiles say how a family of models behaves; users can add their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from coda.errors import UsageError
from coda.program.engine.profiles import load_profile, own_profiles, profile_for
from coda.program.settings import Settings


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("embedded", "smollm2"),
        ("/models/SmolLM2-1.7B-Instruct.gguf", "smollm2"),
        ("openai/Qwen/Qwen3-8B", "qwen3"),
        ("openai/qwen3:32b", "qwen3"),
        ("openai/Qwen/Qwen3-4B-Thinking-2507", "qwen3"),
        ("openai/Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-instruct"),
        ("openai/Qwen/Qwen2.5-7B-Instruct", "qwen2.5"),
        ("openai/openai/gpt-oss-20b", "gpt-oss"),
        ("openai/deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ("openai/deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1"),
        ("openai/meta-llama/Llama-3.1-8B-Instruct", "llama-3"),
        ("groq/llama3-70b-8192", "llama-3"),
        ("openai/o3-mini", "openai-reasoning"),
        ("openai/o4-mini", "openai-reasoning"),
        ("openai/gpt-5-mini", "openai-reasoning"),
        ("openai/gpt-4o", "generic"),
        ("openai/mistral-7b", "generic"),
    ],
)
def test_a_models_name_leads_to_its_family(model: str, family: str) -> None:
    assert profile_for(model).name == family


@pytest.mark.parametrize("name", own_profiles())
def test_every_profile_gives_settings(name: str) -> None:
    profile = load_profile(name)
    assert isinstance(profile.settings(), Settings)
    assert profile.max_tokens < profile.context


@pytest.mark.parametrize("name", ["qwen3", "gpt-oss", "deepseek-r1", "openai-reasoning"])
def test_who_reasons_internally_is_not_asked_to_write_reasoning_down(name: str) -> None:
    assert not load_profile(name).settings().written_reasoning


@pytest.mark.parametrize("name", ["llama-3", "qwen2.5", "qwen3-instruct", "smollm2"])
def test_who_does_not_is_asked_to(name: str) -> None:
    assert load_profile(name).settings().written_reasoning


def test_levels_of_effort() -> None:
    profile = load_profile("gpt-oss")
    assert profile.level(None).name == "medium"
    assert profile.level("high").parameters == {"reasoning_effort": "high"}
    assert (profile.less_than("high"), profile.less_than("low"), profile.less_than("")) == ("medium", None, None)
    with pytest.raises(UsageError, match=r"no level of effort 'huge'. Its levels: low, medium, high"):
        profile.level("huge")


def test_a_level_brings_the_settings_that_suit_it() -> None:
    family = load_profile("qwen3")
    assert not family.settings().written_reasoning
    assert family.at("off").settings().written_reasoning
    assert family.at("off").level(None).name == "off"
    assert family.at(None) == family


def test_a_users_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nthinking = "none"\n[stages]\nquorum = 3\n', "utf-8")
    profile = load_profile(str(file))
    assert (profile.name, profile.settings().quorum) == ("mine", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "is not valid TOML"),
        ("name = 'x'\ncolour = 'red'", "colour: Extra inputs are not permitted"),
        ("name = 'x'\ncontext = 1", "context: Input should be greater than or equal to 256"),
        ("name = 'x'\n[stages]\nquorums = 3", "quorums: .* Known settings: "),
        ("name = 'x'\neffort = 'high'", "no level of effort 'high'"),
    ],
)
def test_a_malformed_one_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=message):
        load_profile(str(file))


def test_a_missing_one_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no profile 'qwen'. Known: .*qwen3"):
        load_profile("qwen")
    with pytest.raises(UsageError, match=r"No such file"):
        load_profile(str(tmp_path / "none.toml"))
