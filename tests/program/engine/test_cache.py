"""The reply cache: nothing is paid for twice, in this process or another."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from pathlib import Path

import diskcache
import dspy
import pytest
from asking import Connect, ask
from local_engine import Answer, LocalEngine

from coda.errors import UsageError
from coda.program.engine.cache import ReplyCache
from coda.program.engine.replies import Reply, capture
from coda.program.types import Usage


async def test_a_reply_is_paid_for_once(connect: Connect, tmp_path: Path) -> None:
    with LocalEngine(Answer("42", reasoning="6 × 7")) as local:
        first = await ask(connect(local, cache_dir=tmp_path))
        engine = connect(local, cache_dir=tmp_path)
        with capture() as replies:
            again = await ask(engine)
    assert first == again == replies[0]
    assert local.requests == 1
    assert engine.ledger.totals() == engine.budget.usage == Usage(cached=1)


async def test_another_sample_model_seed_or_server_is_another_request(connect: Connect, tmp_path: Path) -> None:
    with LocalEngine(models=["test-model", "other"]) as local, LocalEngine() as elsewhere:
        await ask(connect(local, cache_dir=tmp_path))
        await ask(connect(local, cache_dir=tmp_path), rollout_id=1, temperature=1.0)
        await ask(connect(local, cache_dir=tmp_path), rollout_id=2, temperature=1.0)
        await ask(connect(local, cache_dir=tmp_path, seed=1))
        await ask(connect(local, cache_dir=tmp_path, model="openai/other"))
        await ask(connect(elsewhere, cache_dir=tmp_path))
    assert (local.requests, elsewhere.requests) == (5, 1)


async def test_what_the_server_rejects_does_not_change_the_key(connect: Connect, tmp_path: Path) -> None:
    """The first request is sent with the parameter, the second without: in another run both must be found."""
    with LocalEngine(unknown=["top_p"]) as local:
        for _ in range(2):
            engine = connect(local, cache_dir=tmp_path)
            await ask(engine, "1", top_p=0.9)
            await ask(engine, "2", top_p=0.9)
    assert local.requests == 3


async def test_synchronous_and_asynchronous_callers_share_it(connect: Connect, tmp_path: Path) -> None:
    predict = dspy.Predict("question -> answer")
    with LocalEngine("[[ ## answer ## ]]\n42") as local:
        engine = connect(local, cache_dir=tmp_path)
        with dspy.context(lm=engine.lm):
            assert (await asyncio.to_thread(predict, question="6 × 7?")).answer == "42"
            assert (await predict.acall(question="6 × 7?")).answer == "42"
    assert local.requests == 1


def test_another_process_finds_it(tmp_path: Path) -> None:
    program = """
import sys
from coda.program.engine import Engine, EngineConfig
with Engine(EngineConfig(model="openai/test-model", api_base=sys.argv[1], cache_dir=sys.argv[2])) as engine:
    print(engine.lm("6 × 7?")[0], engine.ledger.totals().calls)
"""
    with LocalEngine("42") as local:
        outputs = [
            subprocess.run(
                [sys.executable, "-c", program, local.api_base, str(tmp_path)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            for _ in range(2)
        ]
    assert outputs == [["42", "1"], ["42", "0"]]
    assert local.requests == 1


async def test_it_keeps_to_its_size(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path, megabytes=1)
    for number in range(40):
        await cache.put(str(number), Reply("x" * 100_000))
    kept = [number for number in range(40) if await cache.get(str(number)) is not None]
    cache.close()
    assert 39 in kept
    assert len(kept) < 20


async def test_nothing_is_unpickled(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path)) as cache:
        cache.set("key", Evil())
    cache = ReplyCache(tmp_path, megabytes=1)
    assert await cache.get("key") is None
    cache.close()
    assert not Evil.awake


async def test_what_it_cannot_read_is_asked_again(tmp_path: Path) -> None:
    with diskcache.Cache(str(tmp_path)) as cache:
        for number, text in enumerate(["", "{", "[]", "{}", '{"format": 0}', '{"format": 1, "colour": "red"}']):
            cache.set(str(number), text)
    replies = ReplyCache(tmp_path, megabytes=1)
    assert [await replies.get(str(number)) for number in range(6)] == [None] * 6
    replies.close()


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError, match=r"cache .*file cannot be used"):
        ReplyCache(tmp_path / "file", megabytes=1)


class Evil:
    awake = False

    def __reduce__(self) -> tuple[object, ...]:
        return setattr, (Evil, "awake", True)


def test_evil_is_evil() -> None:
    pickle.loads(pickle.dumps(Evil()))
    assert Evil.awake
    Evil.awake = False
