"""Whatever the Engine writes, in whatever stage: a solution comes, and an answer that is plainly there is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from local_engine import LocalEngine

from coda.program.conductor import Coda
from coda.program.engine import Engine, EngineConfig
from coda.program.settings import AdapterStyle, Settings
from coda.program.types import IOCase, Problem, Solution

STYLES: tuple[AdapterStyle, ...] = get_args(AdapterStyle)
PROBLEMS = (
    Problem(text="What is 6 * 7?"),
    Problem(text="Which is prime?", task="choice", choices=("51", "53")),
    Problem(text="Name a river.", task="text"),
    Problem(text="Write f(n), which doubles n.", task="code", tests=("assert f(2) == 4",), entry_point="f"),
    Problem(text="Add two numbers.", task="code", cases=(IOCase("1 2", "3"),)),
)
EVERYTHING = {
    "straight": False,
    "plan_style": "apart",
    "paths": ("reason", "decompose", "code"),
    "max_paths": 3,
    "quorum": 0,
    "max_refinements": 1,
    "max_rounds": 2,
    "convinced": 1.0,
    "verifier": "weighted",
    "weights": {"vote": 1.0, "judge": 1.0, "compare": 1.0, "tests": 1.0},
}

pieces = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "[[ ## answer ## ]]",
            "[[ ## paths ## ]]",
            "[[ ## completed ## ]]",
            '{"answer": ',
            '{"paths": [{"mode": 7}]}',
            "```python",
            "```",
            "<think>",
            "</think>",
            "Answer:",
            "1. code: loop",
            "\\boxed{",
            "print(",
            "\u2028",
            "right",
            "first",
        ]
    ),
)
replies = st.lists(pieces, max_size=8).map("\n".join)
few = examples(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def local() -> Iterator[LocalEngine]:
    with LocalEngine("ok", keep=False) as local:
        yield local


@pytest.fixture(scope="module")
def engine(local: LocalEngine) -> Iterator[Engine]:
    config = EngineConfig(model="openai/test-model", api_base=local.api_base, max_retries=0)
    with Engine(config) as engine:
        yield engine


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: f"{problem.task}-{len(problem.cases)}")
@pytest.mark.parametrize("style", STYLES)
@few
@given(texts=st.lists(replies, min_size=1, max_size=6))
@example(texts=["\ud7ff\x00```python\nwhile True: pass", "[[ ## answer ## ]]\n"])
def test_every_stage_takes_any_reply(
    local: LocalEngine, engine: Engine, style: AdapterStyle, problem: Problem, texts: list[str]
) -> None:
    turn = iter(range(10**6))

    def answer(_: list[dict[str, Any]]) -> str:
        return texts[next(turn) % len(texts)]

    local.script = answer
    settings = Settings.parse({"adapter": style, "exec_timeout": 2.0, **EVERYTHING}, where="here")
    assert isinstance(Coda(settings, engine=engine).solve(problem), Solution)


WORDS = st.text(alphabet="abc xyz\n,", max_size=60).map(lambda text: text.strip())


@pytest.mark.parametrize("style", STYLES)
@few
@given(before=WORDS, number=st.integers(1000, 10**9))
@example(before="", number=4242)
def test_an_answer_that_is_plainly_in_the_text_is_found(
    local: LocalEngine, engine: Engine, style: AdapterStyle, before: str, number: int
) -> None:
    local.script = f"{before}\nSo the answer is {number}."
    settings = Settings(adapter=style, plan=False, paths=("reason",), quorum=1, reflect=False, max_rounds=1)
    assert Coda(settings, engine=engine).solve(PROBLEMS[0]).answer == str(number)
