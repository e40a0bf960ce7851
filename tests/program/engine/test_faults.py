"""What servers do wrong, and what comes of it: a reply after all, or one clear error; never a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from asking import Connect, ask
from local_engine import (
    BAD_GATEWAY,
    CONTEXT_OVERFLOW,
    EMPTY,
    ERROR_BODY,
    FILTERED,
    FILTERED_PROMPT,
    INVALID_JSON,
    NULL_CONTENT,
    QUOTA,
    RATE_LIMIT,
    RESET,
    SERVER_ERROR,
    UNAUTHORIZED,
    UNAVAILABLE,
    Answer,
    Fault,
    LocalEngine,
    garbage,
    hang,
    refusal,
    unknown_parameter,
)

from coda.errors import EngineError
from coda.program.engine import remedies, server
from coda.program.engine.ask import Ask
from coda.program.engine.replies import capture

PASSING = {
    "429": RATE_LIMIT,
    "429 with Retry-After": RATE_LIMIT.with_headers(Retry_After="0.02"),
    "500": SERVER_ERROR,
    "502 with an error page": BAD_GATEWAY,
    "503": UNAVAILABLE,
    "503 with Retry-After": UNAVAILABLE.with_headers(Retry_After="0.02"),
    "reset in mid-reply": RESET,
    "closed without a reply": hang(0),
    "200 with an error body": ERROR_BODY,
    "invalid JSON": INVALID_JSON,
    "no body": garbage(b" "),
    "null content": NULL_CONTENT,
    "empty content": EMPTY,
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_a_fault_that_passes_costs_a_retry(connect: Connect, fault: Fault) -> None:
    with LocalEngine("42", faults=[fault]) as local:
        engine = connect(local)
        reply = await ask(engine)
    assert reply.text == "42"
    assert local.requests == engine.ledger.totals().calls == 2


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
async def test_one_that_does_not_is_an_error_after_so_many_retries(connect: Connect, fault: Fault) -> None:
    with LocalEngine("42", faults=lambda number, body: fault) as local:
        engine = connect(local, max_retries=0)
        with pytest.raises(EngineError) as caught:
            await ask(engine)
    assert caught.value.transient
    assert str(caught.value).startswith(local.api_base) or local.api_base in str(caught.value)
    assert local.requests == 1


async def test_retries_are_as_many_as_configured(connect: Connect) -> None:
    with LocalEngine(faults=lambda number, body: SERVER_ERROR) as local:
        engine = connect(local, max_retries=3)
        with pytest.raises(EngineError, match=r"answered 500: The server had an error\."):
            await ask(engine)
    assert local.requests == 4


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (UNAUTHORIZED, "auth"),
        (QUOTA, "billing"),
        (FILTERED, "content-filter"),
        (FILTERED_PROMPT, "content-filter"),
        (CONTEXT_OVERFLOW, "context"),
        (refusal(400, "messages must not be empty"), "bad-request"),
        (refusal(404, "Not Found"), "configuration"),
    ],
)
async def test_a_fault_that_will_not_pass_is_not_tried_again(connect: Connect, fault: Fault, kind: str) -> None:
    with LocalEngine(faults=lambda number, body: fault) as local, pytest.raises(EngineError) as caught:
        await ask(connect(local))
    assert caught.value.kind == kind
    assert local.requests == 1


async def test_a_hang_ends_at_the_timeout_and_is_tried_once_more(connect: Connect) -> None:
    with LocalEngine("42", faults=[hang()]) as local:
        assert (await ask(connect(local, timeout=0.1))).text == "42"
        assert (local.requests, local.abandoned) == (2, 1)
    with LocalEngine("42", faults=[hang(), hang(), hang()]) as local:
        engine = connect(local, timeout=0.1)
        with pytest.raises(EngineError, match=r"No reply within 0\.1 s") as caught:
            await ask(engine)
    assert caught.value.kind == "timeout"
    assert local.requests == engine.ledger.totals().calls == 2


async def test_a_server_that_is_not_there(connect: Connect) -> None:
    with LocalEngine() as local:
        pass
    engine = connect(local, max_retries=1)
    with pytest.raises(EngineError, match=rf"Nothing answers at {local.api_base} .* Is the server running\?") as caught:
        await ask(engine)
    assert caught.value.kind == "connection"
    assert engine.ledger.totals().calls == engine.budget.usage.calls == 0


async def test_an_unknown_model_fails_at_once_with_the_servers_list(connect: Connect) -> None:
    with LocalEngine(models=["small", "large"]) as local:
        engine = connect(local)
        with pytest.raises(EngineError, match=r"does not exist\. It serves: small, large\.") as caught:
            await ask(engine)
    assert caught.value.kind == "unknown-model"
    assert local.requests == 1


async def test_a_parameter_that_the_server_rejects_is_dropped_and_remembered(connect: Connect) -> None:
    with LocalEngine("42", unknown=["top_p", "seed"]) as local:
        engine = connect(local, seed=1)
        for prompt in ("1", "2", "3"):
            assert (await ask(engine, prompt, top_p=0.9, temperature=0.5)).text == "42"
    assert local.requests == 5
    assert set(local.bodies[-1]) == {"model", "messages", "max_tokens", "temperature"}


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'top_p' is not supported with this model.",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'top_p'), 'msg': 'Extra inputs are not permitted'}]",
        'Unknown name "top_p": Cannot find field.',
        "top_p does not support 0.9 with this model. Only the default (1) value is supported.",
    ],
)
async def test_the_rejected_parameter_is_found_in_many_wordings(connect: Connect, message: str) -> None:
    def reject(number: int, body: dict[str, Any]) -> Fault | None:
        return refusal(400, message) if "top_p" in body else None

    with LocalEngine("42", faults=reject) as local:
        assert (await ask(connect(local), top_p=0.9, temperature=0.5)).text == "42"
    assert local.requests == 2


async def test_a_limit_that_goes_by_another_name_is_renamed(connect: Connect) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )

    def reject(number: int, body: dict[str, Any]) -> Fault | None:
        return refusal(400, message, code="unsupported_parameter") if "max_tokens" in body else None

    with LocalEngine("42", faults=reject) as local:
        engine = connect(local)
        await ask(engine, "1", max_tokens=50)
        await ask(engine, "2", max_tokens=50)
    assert [sorted(set(body) - {"model", "messages"}) for body in local.bodies] == [
        ["max_tokens"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]


async def test_a_renamed_limit_can_be_raised(connect: Connect) -> None:
    def reject(number: int, body: dict[str, Any]) -> Fault | None:
        return refusal(400, "Use 'max_completion_tokens' instead.") if "max_tokens" in body else None

    with LocalEngine(" ".join(map(str, range(150))), faults=reject) as local:
        assert (await ask(connect(local), max_tokens=100)).finish == "stop"
    assert local.bodies[-1]["max_completion_tokens"] == 200


async def test_a_server_that_goes_on_rejecting_is_believed(connect: Connect) -> None:
    with LocalEngine(faults=lambda number, body: unknown_parameter("max_tokens")) as local:
        engine = connect(local)
        with pytest.raises(EngineError, match="Unrecognized request argument"):
            await ask(engine)
    assert local.requests == 2


class Context:
    """A server with so much context; every word is a token."""

    def __init__(self, tokens: int, wording: str) -> None:
        self.tokens = tokens
        self.wording = wording

    def __call__(self, number: int, body: dict[str, Any]) -> Fault | None:
        prompt = sum(len(message["content"].split()) for message in body["messages"])
        total = prompt + body["max_tokens"]
        if total <= self.tokens:
            return None
        said = self.wording.format(context=self.tokens, total=total, prompt=prompt, completion=body["max_tokens"])
        return refusal(400, said)


WORDINGS = [
    "This model's maximum context length is {context} tokens. However, you requested {total} tokens ({prompt} in the "
    "messages, {completion} in the completion). Please reduce the length of the messages or completion.",
    "'max_tokens' or 'max_completion_tokens' is too large: {completion}. This model's maximum context length is "
    "{context} tokens and your request has {prompt} input tokens ({completion} > {context} - {prompt}).",
    "request ({prompt} tokens) exceeds the available context size ({context} tokens), try increasing it",
]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_a_reply_that_would_not_fit_is_given_less_room(connect: Connect, wording: str) -> None:
    with LocalEngine("42", faults=Context(1000, wording)) as local:
        engine = connect(local)
        assert (await ask(engine, "word " * 500, max_tokens=3000)).text == "42"
        assert (await ask(engine, "Word " * 500, max_tokens=3000)).text == "42"
    assert [body["max_tokens"] for body in local.bodies] == [3000, 484, 1000 - 500 - 256], "the next one fits at once"


@pytest.mark.parametrize("wording", WORDINGS)
async def test_examples_that_would_not_fit_are_left_out(connect: Connect, wording: str) -> None:
    turns = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "word " * 900},
        {"role": "assistant", "content": "word " * 900},
        {"role": "user", "content": "2 + 2"},
    ]
    with LocalEngine("4", faults=Context(1000, wording)) as local:
        reply = await connect(local).ask(Ask.of(None, turns, {"max_tokens": 200}))
    assert reply.text == "4"
    assert local.bodies[-1]["messages"] == [turns[0], turns[3]]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_a_prompt_that_cannot_fit_is_an_error_after_one_try(connect: Connect, wording: str) -> None:
    with LocalEngine(faults=Context(1000, wording)) as local, pytest.raises(EngineError) as caught:
        await ask(connect(local), "word " * 5000)
    assert caught.value.kind == "context"
    assert local.requests == 1


async def test_a_reply_that_was_cut_off_gets_more_room_once(connect: Connect) -> None:
    words = " ".join(str(number) for number in range(150))
    with LocalEngine(words) as local:
        engine = connect(local)
        reply = await ask(engine, max_tokens=100)
        assert (reply.text, reply.finish) == (words, "stop")
        cut = await ask(engine, max_tokens=50)
        assert (cut.text, cut.finish) == (" ".join(words.split()[:100]), "length")
    assert [body["max_tokens"] for body in local.bodies] == [100, 200, 50, 100]
    assert engine.ledger.totals().calls == 4


async def test_a_model_that_only_repeats_itself_gets_no_more_room(connect: Connect) -> None:
    with LocalEngine("and so on " * 400) as local:
        assert (await ask(connect(local), max_tokens=500)).finish == "length"
    assert local.requests == 1


async def test_the_embedded_family_gets_no_more_room(connect: Connect) -> None:
    with LocalEngine(" ".join(map(str, range(400)))) as local:
        assert (await ask(connect(local, profile="smollm2"))).finish == "length"
    assert local.requests == 1


async def test_a_request_may_ask_for_a_level_of_effort(connect: Connect) -> None:
    with LocalEngine("42") as local:
        engine = connect(local, profile="gpt-oss")
        await ask(engine, "1")
        await ask(engine, "2", reasoning_effort="low")
    assert [body["reasoning_effort"] for body in local.bodies] == ["medium", "low"]


async def test_one_that_thinks_without_end_is_asked_to_think_less(connect: Connect) -> None:
    """Lower effort first, then more room, then what there is."""
    script: Sequence[Answer] = [
        Answer(None, reasoning="hmm " * 9, finish="length"),
        Answer(None, reasoning="hm", finish="length"),
        Answer("The answer is 4", reasoning="hm", finish="length"),
    ]
    with LocalEngine(script) as local:
        engine = connect(local, profile="gpt-oss", effort="high")
        with capture() as replies:
            reply = await ask(engine, max_tokens=100)
    assert (reply.text, reply.finish) == ("The answer is 4", "length")
    assert replies == [reply]
    assert [(body["reasoning_effort"], body["max_tokens"]) for body in local.bodies] == [
        ("high", 100 + 32768),
        ("medium", 100 + 16384),
        ("medium", 2 * (100 + 16384)),
    ]


async def test_a_better_reply_that_cannot_be_had_leaves_the_one_that_was_cut_off(connect: Connect) -> None:
    faults = [None, refusal(400, "no"), None]
    with LocalEngine(" ".join(map(str, range(150))), faults=faults) as local:
        reply = await ask(connect(local), max_tokens=100)
    assert (reply.finish, len(reply.text.split())) == ("length", 100)


@pytest.mark.parametrize("fault", [SERVER_ERROR, refusal(400, "Unknown channel: analysis"), NULL_CONTENT])
async def test_a_family_whose_servers_fail_at_high_effort_is_asked_for_less(connect: Connect, fault: Fault) -> None:
    with LocalEngine("42", faults=[fault, fault, None]) as local:
        reply = await ask(connect(local, profile="gpt-oss", effort="high"))
    assert reply.text == "42"
    assert [body["reasoning_effort"] for body in local.bodies] == ["high", "high", "medium"]


async def test_an_answer_in_the_reasoning_field_is_used_and_marked(connect: Connect) -> None:
    with LocalEngine(Answer(None, reasoning="6 × 7 = 42", reasoning_field="reasoning")) as local:
        reply = await ask(connect(local, profile="gpt-oss"))
    assert (reply.text, reply.from_thinking) == ("6 × 7 = 42", True)


async def test_another_seed_is_tried_after_a_reply_that_cannot_be_used(connect: Connect) -> None:
    with LocalEngine("42", faults=[EMPTY, None]) as local:
        await ask(connect(local, seed=7))
    assert local.bodies[0]["seed"] != local.bodies[1]["seed"]


async def test_when_the_server_limits_the_rate_all_wait(connect: Connect) -> None:
    """One limiter for all tasks, and for all Engines on that server."""
    faults = [RATE_LIMIT.with_headers(Retry_After="0.3")]
    with LocalEngine("42", faults=faults) as local:
        first, second = connect(local), connect(local)
        task = asyncio.create_task(ask(first))
        while first.budget.usage.calls == 0:  # noqa: ASYNC110 - until the limit is known
            await asyncio.sleep(0.005)
        await asyncio.gather(task, *(ask(first, f"{i}") for i in range(5)), *(ask(second, f"{i}") for i in range(5)))
        pause = min(local.times[1:]) - local.times[0]
    assert local.requests == 12
    assert pause >= 0.3


async def test_a_storm_of_rate_limits_is_waited_out(connect: Connect) -> None:
    """The server takes 4 at a time: the others must come back, one by one, without using up their retries."""
    with LocalEngine("42", latency=0.01) as local:
        local.faults = lambda number, body: RATE_LIMIT if local.in_flight > 4 else None
        engine = connect(local, concurrency=32)
        replies = await asyncio.gather(*(ask(engine, f"{i}") for i in range(64)))
    assert all(reply.text == "42" for reply in replies)
    assert local.requests == engine.ledger.totals().calls


async def test_rate_limits_without_end_are_not_waited_out(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "PATIENCE", 0.1)
    with LocalEngine(faults=lambda number, body: RATE_LIMIT) as local:
        engine = connect(local)
        with pytest.raises(EngineError, match="answered 429"):
            await ask(engine)
    assert local.requests > 2


async def test_a_server_that_asks_for_too_long_a_pause_is_not_waited_for(connect: Connect) -> None:
    with LocalEngine(faults=[RATE_LIMIT.with_headers(Retry_After="86400")]) as local:
        engine = connect(local)
        with pytest.raises(EngineError) as caught:
            await ask(engine)
    assert (caught.value.kind, caught.value.retry_after) == ("rate-limit", 86400)


async def test_an_engine_that_is_down_is_found_out_and_comes_back(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "DOWN_AFTER", 0.05)
    monkeypatch.setattr(server, "DOWN_FOR", 0.2)
    with LocalEngine("42") as local:
        local.faults = lambda number, body: SERVER_ERROR
        engine = connect(local, max_retries=2)
        with pytest.raises(EngineError):
            await ask(engine, "1")
        await asyncio.sleep(0.06)
        for prompt in ("2", "3", "4"):
            with pytest.raises(EngineError):
                await ask(engine, prompt)
        asked = local.requests
        with pytest.raises(EngineError, match=r"is down: \d+ requests in a row have failed") as caught:
            await ask(engine, "5")
        assert caught.value.kind == "server"
        assert local.requests == asked
        local.faults = ()
        await asyncio.sleep(0.25)
        assert (await ask(engine, "6")).text == "42"
        assert (await ask(engine, "7")).text == "42"
