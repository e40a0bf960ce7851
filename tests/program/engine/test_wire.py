"""Whatever a server sends is a reply, or an error of ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coda.errors import EngineError
from coda.program.engine.profiles import Profile, load_profile, own_profiles
from coda.program.engine.replies import Reply
from coda.program.engine.wire import MAX_TEXT, UnusableReply, read_error, read_models, read_reply
from coda.program.types import Usage

GENERIC = load_profile("generic")


def completion(message: dict[str, Any], finish: str | None = "stop", **document: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **document}).encode()


def read(raw: bytes, profile: Profile = GENERIC, *, thinks: bool = False) -> Reply:
    return read_reply(raw, profile, thinks=thinks, where="server")


def test_a_plain_reply() -> None:
    used = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 2},
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    assert read(completion({"content": " 42\n"}, usage=used)) == Reply(
        "42", usage=Usage(calls=1, prompt_tokens=9, completion_tokens=5, reasoning_tokens=2), cached_tokens=8
    )


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_in_a_field_of_its_own(field: str) -> None:
    reply = read(completion({"content": "42", field: "6 × 7"}))
    assert (reply.text, reply.thinking, reply.from_thinking) == ("42", "6 × 7", False)


def test_thinking_among_the_parts_of_the_content() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "6 × 7"}]}, {"type": "text", "text": "42"}]
    reply = read(completion({"content": parts}))
    assert (reply.text, reply.thinking) == ("42", "6 × 7")


@pytest.mark.parametrize("content", [None, "", "  "])
def test_an_answer_filed_under_thinking_is_used_and_marked(content: str | None) -> None:
    reply = read(completion({"content": content, "reasoning": "6 × 7 = 42"}))
    assert (reply.text, reply.thinking, reply.from_thinking) == ("6 × 7 = 42", "", True)


def test_thinking_that_was_cut_off_is_no_answer() -> None:
    reply = read(completion({"content": "<think>[[ ## answer ## ]]\n41 or"}, "length"))
    assert (reply.text, reply.finish) == ("", "length")
    assert reply.thinking.endswith("41 or")


def test_cut_off_thinking_without_its_opening_tag_is_no_answer_either() -> None:
    """The chat template of DeepSeek-R1 writes the tag, so that it is not in the reply."""
    raw = completion({"content": "Let me see, 41 or"}, "length")
    assert read(raw, load_profile("deepseek-r1"), thinks=True).text == ""
    assert read(raw, load_profile("llama-3")).text == "Let me see, 41 or"


def test_an_answer_that_was_cut_off_says_so() -> None:
    reply = read(completion({"content": "<think>6 × 7</think>The answer is 4"}, "length"))
    assert (reply.text, reply.finish) == ("The answer is 4", "length")


def test_hidden_thinking_that_took_all_the_room() -> None:
    assert read(completion({"content": ""}, "length")).finish == "length"


def test_an_absurdly_long_reply_counts_as_cut_off() -> None:
    reply = read(completion({"content": "la " * MAX_TEXT}))
    assert (len(reply.text), reply.finish) == (MAX_TEXT, "length")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": {"0": 1}}',
        b'{"choices": [{"message": "hi"}]}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        completion({"content": ""}),
        completion({"content": None, "tool_calls": [{"id": "1"}]}),
        completion({"content": 7}),
    ],
)
def test_what_is_no_reply_is_refused(raw: bytes) -> None:
    with pytest.raises(UnusableReply) as caught:
        read(raw)
    assert caught.value.kind == "bad-reply"
    assert caught.value.transient


def test_what_an_unusable_reply_cost_is_kept() -> None:
    with pytest.raises(UnusableReply) as caught:
        read(completion({"content": ""}, usage={"prompt_tokens": 9, "completion_tokens": 1}))
    assert caught.value.usage == Usage(calls=1, prompt_tokens=9, completion_tokens=1)


@pytest.mark.parametrize("used", [None, 7, {"prompt_tokens": "9"}, {"prompt_tokens": -1}, {"prompt_tokens": True}])
def test_counts_that_are_none_count_as_nothing(used: Any) -> None:
    assert read(completion({"content": "42"}, usage=used)).usage == Usage(calls=1)


def test_a_withheld_reply() -> None:
    with pytest.raises(UnusableReply, match="content filter") as caught:
        read(completion({"content": ""}, "content_filter"))
    assert caught.value.kind == "content-filter"
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Provider returned error", "code": 502}, "server"),
        ({"message": "Rate limit", "code": 429}, "rate-limit"),
        ({"message": "something broke"}, "bad-reply"),
        ("something broke", "bad-reply"),
    ],
)
def test_an_error_in_the_body_of_a_200(error: Any, kind: str) -> None:
    with pytest.raises(EngineError) as caught:
        read(json.dumps({"error": error}).encode())
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "bad value for temperature"}, "bad-request"),
        (400, {"message": "too long", "code": "context_length_exceeded"}, "context"),
        (400, {"message": "request (6031 tokens) exceeds the available context size (4096 tokens)"}, "context"),
        (400, {"message": "filtered", "code": "content_filter"}, "content-filter"),
        (401, {"message": "Incorrect API key"}, "auth"),
        (402, {"message": "Payment required"}, "billing"),
        (403, {"message": "Forbidden"}, "auth"),
        (404, {"message": "The model `x` does not exist.", "code": "model_not_found"}, "unknown-model"),
        (404, {"message": 'model "x" not found, try pulling it first'}, "unknown-model"),
        (404, {"message": "Not Found"}, "configuration"),
        (413, {"message": "Payload too large"}, "context"),
        (429, {"message": "Rate limit reached"}, "rate-limit"),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, "billing"),
        (500, {"message": "oops"}, "server"),
        (503, {"message": "overloaded"}, "server"),
        (529, {"message": "overloaded"}, "server"),
        (302, {}, "configuration"),
    ],
)
def test_kinds_of_refusals(status: int, error: dict[str, Any], kind: str) -> None:
    found = read_error(status, json.dumps({"error": error}).encode(), {}, "server")
    assert (found.kind, found.status) == (kind, status)
    assert str(found).startswith(f"server answered {status}: ")


@pytest.mark.parametrize(
    "body", [{"error": "no"}, {"detail": "no"}, {"message": "no", "code": 400}, {"detail": {"message": "no"}}]
)
def test_errors_are_read_however_they_are_wrapped(body: dict[str, Any]) -> None:
    assert str(read_error(400, json.dumps(body).encode(), {}, "server")) == "server answered 400: no"


def test_an_error_page_is_quoted() -> None:
    assert "502 Bad Gateway" in str(read_error(502, b"<html>502 Bad\n Gateway</html>", {}, "server"))


def test_retry_after_as_seconds_and_as_a_date() -> None:
    def after(value: str) -> float | None:
        return read_error(429, b"", {"Retry-After": value}, "server").retry_after

    assert after("1.5") == 1.5
    assert after("soon") is after("-3") is after("nan") is after("inf") is after("") is None
    in_a_minute = after(format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    assert in_a_minute is not None
    assert 50 < in_a_minute <= 60
    assert after("Wed, 21 Oct 2015 07:28:00 GMT") == 0


def test_halves_of_characters_are_replaced() -> None:
    reply = read(b'{"choices": [{"message": {"content": "\\ud83d 42", "reasoning": "\\udc00"}}]}')
    assert (reply.text, reply.thinking) == ("? 42", "?")


def test_a_list_of_models() -> None:
    assert read_models(b'{"data": [{"id": "a"}, {"name": "b"}, 7, {"id": "c"}]}') == ["a", "c"]
    assert read_models(b"<html>") is read_models(b"[]") is read_models(b'{"data": {}}') is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "reasoning_content", "reasoning", "refusal", "tool_calls"), values)
)
choices = st.fixed_dictionaries({}, optional={"message": messages | values, "finish_reason": values})
documents = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(choices, max_size=2) | values, "usage": values, "error": values}
)


@given(
    st.binary() | values.map(json.dumps).map(str.encode) | documents.map(json.dumps).map(str.encode),
    st.sampled_from(list(own_profiles().values())),
    st.booleans(),
)
def test_whatever_the_bytes(raw: bytes, profile: Profile, thinks: bool) -> None:
    try:
        reply = read(raw, profile, thinks=thinks)
    except EngineError:
        return
    assert reply.text or reply.finish == "length"
    reply.text.encode()
    reply.thinking.encode()


@given(st.integers(200, 599), st.binary() | documents.map(json.dumps).map(str.encode), st.text())
def test_whatever_the_refusal(status: int, raw: bytes, header: str) -> None:
    error = read_error(status, raw, {"Retry-After": header}, "server")
    assert error.status == status
    str(error).encode()


@given(st.text(min_size=1).map(str.strip).filter(bool))
def test_an_answer_that_is_plainly_there_is_found(answer: str) -> None:
    wanted = answer.encode("utf-8", "replace").decode()
    if "<" in wanted:
        return
    for content in (answer, f"<think>no: 41</think>{answer}", f"no: 41</think>\n{answer}"):
        assert read(completion({"content": content})).text == wanted.strip()
