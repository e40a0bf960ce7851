"""How what is asked becomes a request: the profile applied, the server's habits heeded."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from coda.errors import UsageError
from coda.program.engine.ask import Ask, Draft, adapt, digest, encode, most_prompt_tokens, render
from coda.program.engine.profiles import load_profile
from coda.program.engine.server import Habits

TURNS = [
    {"role": "system", "content": "Add."},
    {"role": "user", "content": "1 + 1"},
    {"role": "assistant", "content": "2"},
    {"role": "user", "content": "2 + 2"},
]


def body(name: str = "generic", effort: str | None = None, seed: int | None = None, **options: Any) -> dict[str, Any]:
    profile = load_profile(name)
    return render(Draft(Ask.of(None, TURNS, options), profile.level(effort)), profile, seed)


def test_what_is_asked_is_sent() -> None:
    assert body(temperature=0.5, max_tokens=100, top_p=0.9, stop=["\n"]) == {
        "messages": TURNS,
        "temperature": 0.5,
        "max_tokens": 100,
        "top_p": 0.9,
        "stop": ["\n"],
    }


def test_what_is_not_asked_is_left_to_the_profile() -> None:
    assert body(temperature=None) == {"messages": TURNS, "max_tokens": 4096}
    assert body("qwen3-instruct")["temperature"] == 0.7


def test_a_bare_prompt_is_a_user_message() -> None:
    assert Ask.of("hi", None, {}).messages == [{"role": "user", "content": "hi"}]


def test_what_is_dspys_own_is_not_sent() -> None:
    assert body(n=3, cache=True, rollout_id=7, num_retries=2) == body()


@pytest.mark.parametrize("option", ["api_base", "api_key", "base_url", "headers", "model", "extra_headers"])
def test_a_program_cannot_redirect_a_request(option: str) -> None:
    """A saved program's state may come from anywhere; with it, the key would go there."""
    with pytest.raises(UsageError, match=option):
        Ask.of("hi", None, {option: "https://elsewhere.example"})


@pytest.mark.parametrize(
    "option",
    [{"max_tokens": 0}, {"max_tokens": "many"}, {"max_tokens": True}, {"temperature": -1}, {"temperature": "hot"}],
)
def test_a_number_that_is_none_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(option))):
        Ask.of("hi", None, option)


def test_room_to_think_is_added_to_what_the_answer_may_take() -> None:
    assert body("qwen3", "off", max_tokens=100)["max_tokens"] == 100
    assert body("qwen3", "on", max_tokens=100)["max_tokens"] == 16484


def test_the_limit_leaves_room_for_the_prompt() -> None:
    profile = load_profile("smollm2")
    long = Draft(Ask.of("word " * 2000, None, {"max_tokens": 3000}), profile.level(None))
    assert render(long, profile, None)["max_tokens"] == 4096 - 3000 - 256
    longer = Draft(Ask.of("word " * 4000, None, {"max_tokens": 3000}), profile.level(None))
    assert render(longer, profile, None)["max_tokens"] == 64


def test_effort_is_asked_for_in_the_familys_way() -> None:
    off = body("qwen3", "off")
    assert off["messages"][-1]["content"] == "2 + 2 /no_think"
    assert off["chat_template_kwargs"] == {"enable_thinking": False}
    assert body("gpt-oss", "low")["reasoning_effort"] == "low"
    assert TURNS[-1]["content"] == "2 + 2"


def test_effort_asked_for_in_openais_way_is_translated() -> None:
    assert "reasoning_effort" not in body("qwen3", "off", reasoning_effort="low")
    assert body("gpt-oss", "low", reasoning_effort="high")["reasoning_effort"] == "low"
    assert body("generic", reasoning_effort="high")["reasoning_effort"] == "high"


def test_temperature_rules() -> None:
    assert body("qwen3", temperature=0.0)["temperature"] == 0.6
    assert body("qwen3", temperature=1.0)["temperature"] == 1.0
    assert "temperature" not in body("openai-reasoning", temperature=0.7)


def test_the_limits_name() -> None:
    assert body("openai-reasoning", max_tokens=100)["max_completion_tokens"] == 100 + 24576
    assert "max_tokens" not in body("openai-reasoning", max_tokens=100)


def test_a_family_that_ignores_system_messages_gets_the_instruction_with_the_first_user_message() -> None:
    assert body("deepseek-r1")["messages"] == [{"role": "user", "content": "Add.\n\n1 + 1"}, *TURNS[2:]]


def test_every_sample_has_a_seed_of_its_own_the_same_in_every_run() -> None:
    seeds = [body(seed=1, rollout_id=rollout, temperature=1.0)["seed"] for rollout in (None, 1, 2)]
    assert len(set(seeds)) == 3
    assert seeds[1] == body(seed=1, rollout_id=1)["seed"]
    assert body(seed=2, rollout_id=1)["seed"] != seeds[1]
    assert body(seed=1, extra_body={"seed": 5})["seed"] == 5


def test_examples_can_be_left_out() -> None:
    profile = load_profile("generic")
    draft = Draft(Ask.of(None, TURNS, {}), profile.level(None), examples=False)
    assert render(draft, profile, None)["messages"] == [TURNS[0], TURNS[3]]


def test_a_pydantic_model_becomes_a_schema() -> None:
    class Answer(pydantic.BaseModel):
        value: int

    schema = body(response_format=Answer)["response_format"]
    assert schema["json_schema"]["name"] == "Answer"
    assert schema["json_schema"]["schema"]["properties"]["value"]["type"] == "integer"


def adapted(habits: Habits, **sent: Any) -> dict[str, Any]:
    draft = Draft(Ask.of(None, TURNS, {}), load_profile("generic").level(None))
    return adapt({"messages": TURNS, **sent}, habits, draft)


def test_what_the_server_does_not_take_is_left_out_or_renamed() -> None:
    habits = Habits(dropped={"top_p"}, renamed={"max_tokens": "max_completion_tokens"})
    assert adapted(habits, top_p=1, max_tokens=5, stop=None) == {"messages": TURNS, "max_completion_tokens": 5}


def test_a_context_that_is_known_bounds_the_limit() -> None:
    habits = Habits(context=1000, tokens_per_character=1.0)
    assert adapted(habits, max_tokens=900)["max_tokens"] == 1000 - 15 - 256
    assert adapted(habits, max_tokens=100)["max_tokens"] == 100


def test_a_limit_that_was_worked_out_from_the_servers_own_count_stays() -> None:
    draft = Draft(Ask.of(None, TURNS, {}), load_profile("generic").level(None), max_tokens=980)
    assert adapt({"messages": TURNS, "max_tokens": 980}, Habits(context=1000), draft)["max_tokens"] == 980


def test_the_order_of_options_makes_no_difference() -> None:
    assert encode(body(top_p=0.9, temperature=0.5)) == encode(body(temperature=0.5, top_p=0.9))


def test_halves_of_characters_become_question_marks() -> None:
    assert encode({"x": "\ud83d é"}) == '{"x":"? é"}'.encode()


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_options_that_json_cannot_hold_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="cannot be sent as JSON"):
        encode({"x": value})


def test_the_most_that_a_prompt_can_have_is_more_than_any_tokenizer_makes_of_it() -> None:
    text = "é" * 100
    assert most_prompt_tokens(encode({"messages": [{"role": "user", "content": text}]})) > 200 + 200


def test_everything_that_is_sent_and_the_sample_tell_requests_apart() -> None:
    keys = {
        digest("a", "m", b"{}", None),
        digest("b", "m", b"{}", None),
        digest("a", "n", b"{}", None),
        digest("a", "m", b"{ }", None),
        digest("a", "m", b"{}", 0),
        digest("a", "m", b"{}", 1),
    }
    assert len(keys) == 6
