"""The LM that DSPy sees: copies share the Engine, samples stay apart, errors are ours, nothing is deprecated."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from asking import Connect
from dspy.lm15 import Message, Request, TextPart
from dspy.utils import exceptions
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from dspy.utils.usage_tracker import track_usage
from local_engine import RATE_LIMIT, SERVER_ERROR, Answer, LocalEngine

from coda.errors import BudgetExceeded, EngineError, UsageError
from coda.program.engine import Engine, EngineConfig
from coda.program.engine.provider import KINDS
from coda.program.engine.replies import capture
from coda.program.settings import Limits

REPLY = "[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """DSPy warns of what it will drop: nothing on our path may be among that."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def predict() -> dspy.Predict:
    return dspy.Predict("question -> answer")


async def test_predictors_work_both_ways(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY) as local, dspy.context(lm=connect(local).lm):
        assert (await predict.acall(question="6 × 7?")).answer == "42"
        assert (await asyncio.to_thread(predict, question="6 × 7?")).answer == "42"
    assert local.bodies[0] == local.bodies[1]
    assert set(local.bodies[0]) == {"model", "messages", "max_tokens"}


async def test_dspy_neither_repeats_nor_caches(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY) as local:
        engine = connect(local)
        with dspy.context(lm=engine.lm):
            await predict.acall(question="6 × 7?")
            await predict.acall(question="6 × 7?")
            local.faults = lambda number, body: SERVER_ERROR
            engine.config = engine.config.model_copy(update={"max_retries": 0})
            with pytest.raises(EngineError):
                await predict.acall(question="6 × 7?")
    assert local.requests == 3
    assert engine.lm.history == []


async def test_copies_share_the_engine(connect: Connect) -> None:
    with LocalEngine(REPLY) as local:
        engine = connect(local)
        program = dspy.ChainOfThought("question -> answer")
        program.set_lm(engine.lm)
        lms = [
            engine.lm.copy(temperature=0.9, rollout_id=3),
            copy.deepcopy(engine.lm),
            copy.copy(engine.lm),
            program.deepcopy().predict.lm,
            program.reset_copy().predict.lm or engine.lm,
        ]
        for number, lm in enumerate(lms):
            await lm.acall(f"{number}")
        assert copy.deepcopy(engine) is engine
    assert local.requests == engine.ledger.totals().calls == 5
    assert local.bodies[0]["temperature"] == 0.9
    assert "rollout_id" not in local.bodies[0]


async def test_a_rollout_is_a_sample_of_its_own(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY, latency=0.05) as local:
        engine = connect(local, seed=5)
        with dspy.context(lm=engine.lm):
            await asyncio.gather(
                predict.acall(question="q", config={"rollout_id": 1, "temperature": 1.0}),
                predict.acall(question="q", config={"rollout_id": 1, "temperature": 1.0}),
                predict.acall(question="q", config={"rollout_id": 2, "temperature": 1.0}),
            )
        with dspy.context(lm=engine.lm.copy(rollout_id=1, temperature=1.0)):
            await predict.acall(question="q")
    seeds = [body["seed"] for body in local.bodies]
    assert local.requests == 3
    assert sorted(seeds.count(seed) for seed in set(seeds)) == [1, 2]


async def test_n_samples_are_asked_for_at_once(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY, latency=0.1) as local, dspy.context(lm=connect(local).lm):
        found = await predict.acall(question="q", config={"n": 4, "temperature": 1.0})
    assert found.completions.answer == ["42"] * 4
    assert (local.requests, local.max_in_flight) == (4, 4)


async def test_thinking_reaches_dspy_as_reasoning_and_never_as_text(connect: Connect) -> None:
    text = f"<think>[[ ## answer ## ]]\n41?\n[[ ## completed ## ]]</think>{REPLY}"
    with LocalEngine(text) as local:
        lm = connect(local).lm
        with dspy.context(lm=lm):
            assert (await dspy.Predict("question -> answer").acall(question="q")).answer == "42"
        (output,) = await lm.acall("q")
    assert output == {"text": REPLY, "reasoning_content": "[[ ## answer ## ]]\n41?\n[[ ## completed ## ]]"}


async def test_thinking_that_was_cut_off_is_not_parsed(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(Answer(f"<think>{REPLY}", finish="length")) as local:
        engine = connect(local)
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with (
            dspy.context(lm=engine.lm, adapter=adapter),
            capture() as replies,
            pytest.raises(AdapterParseError),
        ):
            await predict.acall(question="q")
    assert replies[-1].finish == "length"


async def test_our_errors_arrive_as_they_are(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY, faults=lambda number, body: SERVER_ERROR) as local:
        with dspy.context(lm=connect(local, max_retries=0).lm):
            with pytest.raises(EngineError) as caught:
                await predict.acall(question="q")
            assert (caught.value.kind, caught.value.status) == ("server", 500)
            with pytest.raises(EngineError):
                await asyncio.to_thread(predict, question="q")
        with dspy.context(lm=connect(local, limits=Limits(max_calls=1)).lm), pytest.raises(BudgetExceeded):
            await predict.acall(question="q")


async def test_a_predictor_cannot_redirect_requests(connect: Connect) -> None:
    with LocalEngine(REPLY) as local:
        predict = dspy.Predict("question -> answer", api_base="http://127.0.0.1:9/v1")
        with dspy.context(lm=connect(local).lm), pytest.raises(UsageError, match="may not set api_base"):
            await predict.acall(question="q")
    assert local.requests == 0


async def test_explicit_requests_of_dspys_new_interface(connect: Connect) -> None:
    request = Request(model="openai/test-model", messages=(Message(role="user", parts=(TextPart("6 × 7?"),)),))
    with LocalEngine(Answer("42", reasoning="6 × 7", prompt_tokens=5, completion_tokens=4)) as local:
        lm = connect(local).lm
        responses = [await lm.acall(request), await asyncio.to_thread(lm, request)]
    for response in responses:
        assert response.text == "42"
        assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 4)
        assert response.finish_reason == "stop"
    assert [body["messages"] for body in local.bodies] == [[{"role": "user", "content": "6 × 7?"}]] * 2


async def test_dspys_usage_tracker_sees_the_tokens(connect: Connect, predict: dspy.Predict) -> None:
    with LocalEngine(REPLY) as local, dspy.context(lm=connect(local).lm), track_usage() as tracker:
        await predict.acall(question="a")
        await predict.acall(question="b")
    total = tracker.get_total_tokens()["openai/test-model"]
    assert total["prompt_tokens"] == local.prompt_tokens
    assert total["completion_tokens"] == local.completion_tokens


async def test_callbacks_see_calls_once(connect: Connect, predict: dspy.Predict) -> None:
    class Seen(BaseCallback):
        def __init__(self) -> None:
            self.calls: list[str] = []

        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.calls.append("start")

        def on_lm_end(self, call_id: str, outputs: Any, exception: Any = None) -> None:
            self.calls.append("end")

    seen = Seen()
    with LocalEngine(REPLY) as local, dspy.context(lm=connect(local).lm, callbacks=[seen]):
        await predict.acall(question="q")
        await asyncio.to_thread(predict, question="q")
    assert seen.calls == ["start", "end"] * 2


async def test_a_saved_program_finds_its_engine_again_and_holds_no_key(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-very-secret")
    with LocalEngine(REPLY) as local:
        engine = connect(local, api_key_env="SOME_KEY")
        program = dspy.Predict("question -> answer")
        program.set_lm(engine.lm.copy(temperature=0.4))
        await program.acall(question="q")
        state = json.loads(json.dumps(program.dump_state()))
        again = dspy.Predict("question -> answer")
        again.load_state(state, allow_unsafe_lm_state=True)
        assert (await again.acall(question="q")).answer == "42"
        assert again.lm.coda.config == engine.config
        await again.lm.coda.aclose()
    assert local.bodies[0] == local.bodies[1]
    assert local.headers[1]["authorization"] == "Bearer sk-very-secret"
    everything = f"{json.dumps(state)} {engine.config!r} {engine.lm!r} {vars(engine)!r} {engine.config.model_dump()}"
    assert "sk-very-secret" not in everything
    assert b"sk-very-secret" not in pickle.dumps(engine)
    assert pickle.loads(pickle.dumps(engine)).config == engine.config


def test_the_lm_of_a_reasoning_model_can_be_saved_too() -> None:
    engine = Engine(EngineConfig(model="openai/gpt-5-mini", api_base="http://127.0.0.1:9/v1"))
    state = engine.lm.copy(temperature=0.2).dump_state()
    again = type(engine.lm).load_state(state)
    assert again.kwargs == engine.lm.copy(temperature=0.2).kwargs


def test_an_engine_that_nobody_closed_leaves_quietly() -> None:
    program = """
import sys
from coda.program.engine import Engine, EngineConfig
print(Engine(EngineConfig(model="openai/test-model", api_base=sys.argv[1])).lm("6 × 7?")[0])
"""
    with LocalEngine("42") as local:
        ended = subprocess.run(
            [sys.executable, "-W", "default", "-W", "ignore::DeprecationWarning", "-c", program, local.api_base],
            capture_output=True,
            text=True,
            check=True,
        )
    assert (ended.stdout, ended.stderr) == ("42\n", "")


def test_every_error_of_dspy_is_mapped() -> None:
    """A new one in a later DSPy must be given a meaning here."""
    known = {
        value for value in vars(exceptions).values() if inspect.isclass(value) and issubclass(value, exceptions.LMError)
    }
    assert known == set(KINDS)


async def test_the_optimizers_demos_are_complete(connect: Connect) -> None:
    """DSPy's bootstrap runs a synchronous program in threads, over the bridge, and reads the trace."""
    with LocalEngine(REPLY) as local:
        engine = connect(local)
        trainset = [dspy.Example(question=f"{i}", answer="42").with_inputs("question") for i in range(4)]
        optimizer = dspy.BootstrapFewShot(
            metric=lambda example, prediction, trace=None: prediction.answer == example.answer,
            max_bootstrapped_demos=2,
            max_labeled_demos=0,
        )

        def compile_() -> Any:
            with dspy.context(lm=engine.lm):
                return optimizer.compile(dspy.Predict("question -> answer"), trainset=trainset)

        compiled = await asyncio.to_thread(compile_)
    assert [(demo.question, demo.answer) for demo in compiled.demos] == [("0", "42"), ("1", "42")]


def test_an_engine_needs_no_loop_of_its_callers(predict: dspy.Predict) -> None:
    with LocalEngine(REPLY, faults=[RATE_LIMIT]) as local:
        config = EngineConfig(model="openai/test-model", api_base=local.api_base)
        with Engine(config) as engine, dspy.context(lm=engine.lm):
            engine.check()
            assert predict(question="q").answer == "42"
            assert asyncio.run(predict.acall(question="q")).answer == "42"
            assert asyncio.run(predict.acall(question="q")).answer == "42"
    assert local.requests == 4
