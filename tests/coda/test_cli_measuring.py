"""Reading what was measured, and measuring on bad input: ``coda gaps``, ``compare``, ``verify --model``, ``eval``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from local_engine import UNAUTHORIZED, LocalEngine


def on(server: LocalEngine) -> list[str]:
    return ["--model", "openai/test-model", "--api-base", server.api_base]


def answered(messages: list[dict[str, Any]]) -> str:
    first, second = re.findall(r"What is (\d+) \+ (\d+)", str(messages))[-1]
    return f"Answer: {int(first) + int(second)}"


def write(name: str, *rows: dict[str, Any] | str) -> str:
    Path(name).write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return name


def sums(n: int = 12) -> str:
    rows = [{"problem": f"What is {i} + {i + 3}?", "answer": str(2 * i + 3), "split": "test"} for i in range(n)]
    return write("sums.jsonl", *rows)


def recorded(n: int = 15) -> str:
    rows = [{"problem": f"What is {i} + 1?", "answer": str(i + 1), "samples": ["0.5", f"{i + 1}"]} for i in range(n)]
    return write("samples.jsonl", *rows)


PLAIN = ("--set", "plan=false", "--set", "adapter=plain", "--set", 'paths=["reason"]', "--set", "max_paths=1")


def test_gaps_shows_all_figures_of_a_run(call: Any) -> None:
    with LocalEngine(answered) as server:
        call("eval", sums(), *on(server), *PLAIN, "--samples", "2", "--run-dir", "run")
    status, out, _ = call("gaps", "run")
    assert status == 0
    for words in ("single", "reason", "early exit", "reflector", "verifier", "Accuracy against tokens", "pass@k"):
        assert words in out
    status, out, _ = call("gaps", "run", "--json")
    assert (status, json.loads(out)["final"]) == (0, 1.0)


def test_gaps_says_what_to_give_where_there_is_no_run(call: Any) -> None:
    status, out, err = call("gaps", "nowhere")
    assert (status, out) == (2, "")
    assert "coda eval --run-dir" in err


def test_compare_names_the_problems_that_flipped(call: Any) -> None:
    with LocalEngine(answered) as server:
        call("eval", sums(), *on(server), *PLAIN, "--run-dir", "right")
        server.script = "Answer: 3"
        call("eval", sums(), *on(server), *PLAIN, "--run-dir", "wrong", "--seed", "1")
    status, out, err = call("compare", "right", "wrong")
    assert status == 0
    assert "wrong lost: sums-0002, sums-0003" in out
    assert "gained:" not in out
    assert "12 problems in common; they cannot show a difference of less than 50 points" in err


def test_near_duplicates_in_other_splits_are_said_when_a_benchmark_is_measured_on(call: Any) -> None:
    story = (
        "What is {n} + 1? Ana goes to the market on Monday, buys red apples, walks home, and eats two of them at once "
        "while her brother, who does not care for apples at all, looks out of the window and waits for the rain to end."
    )
    rows = [{"problem": story.format(n=n), "answer": str(n + 1), "split": s} for n, s in ((1, "train"), (2, "test"))]
    with LocalEngine(answered) as server:
        status, _, err = call("eval", write("near.jsonl", *rows), *on(server), *PLAIN, "--run-dir", "run")
    assert status == 0
    assert "1 pair(s) of problems in different splits are nearly the same" in err


def test_verify_with_a_model_compares_and_says_what_it_cost(call: Any) -> None:
    with LocalEngine("Answer: second") as server:
        status, out, err = call("verify", recorded(), *on(server), "--json")
        found = json.loads(out)
        assert status == 0
        assert found["calls"] == server.requests == 60
        assert "60 calls" in err
    assert set(found["strategies"]) == {"majority", "compare", "judge"}
    assert found["troubles"] == {}


def test_verify_ends_with_one_sentence_where_the_engine_refuses(call: Any) -> None:
    with LocalEngine("Answer: first", faults=lambda *_: UNAUTHORIZED) as server:
        status, out, err = call("verify", recorded(60), *on(server))
        assert server.requests < 200
    assert (status, out) == (1, "")
    assert "The Engine failed on each of" in err
    assert "--model" in err


def test_verify_keeps_to_its_budget_and_says_where_it_ended(call: Any) -> None:
    with LocalEngine("Answer: first") as server:
        status, out, err = call("verify", recorded(), *on(server), "--max-calls", "10", "--json")
        assert server.requests <= 10
    assert status == 3
    assert json.loads(out)["troubles"].keys() == {"budget"}
    assert "the vote decided there" in err


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        (['{"problem": "1+1?", "answer": "2"}', '{"problem": '], (), ["bad.jsonl", "line 2"]),
        ([{"problem": "1+1?", "answer": "2"}, {"problem": "1+1?"}], (), ["bad.jsonl", "line 2", "answer"]),
        ([{"id": "a", "problem": f"{n}?", "answer": "2"} for n in (1, 2)], (), ["'a'", "line 2"]),
        ([{"problem": "1+1?", "answer": "?!"}], (), ["bad.jsonl", "line 1", "answer"]),
        ([{"problem": "Which?", "choices": ["x", "y"], "answer": "C"}], (), ["bad.jsonl", "line 1", "answer"]),
        ([{"problem": "1+1?", "answer": "2", "split": "train"}], ("--split", "test"), ["test split", "train 1"]),
        ([{"problem": "1+1?", "answer": "2", "split": "test"}], ("--ids", "none"), ["none", "coda data show"]),
        ([{"problem": "1+1?", "answer": "2", "split": "test"}], ("--samples", "0"), ["--samples", "greater"]),
        ([], (), ["bad has no rows"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    call: Any, rows: list[Any], more: tuple[str, ...], words: list[str]
) -> None:
    with LocalEngine(answered) as server:
        status, out, err = call("eval", write("bad.jsonl", *rows), *on(server), *more, "--run-dir", "run")
        assert server.requests == 0
    assert (status, out) == (2, ""), err
    assert all(word in err for word in words), err


def test_a_results_file_that_a_crash_cut_off_is_repaired_and_said(call: Any, caplog: pytest.LogCaptureFixture) -> None:
    with LocalEngine(answered) as server:
        command = ("eval", sums(), *on(server), *PLAIN, "--run-dir", "run", "--json")
        first = json.loads(call(*command)[1])
        asked = server.requests
        results = Path("run/results.jsonl")
        results.write_bytes(results.read_bytes()[:-40])
        again = json.loads(call(*command)[1])
        assert server.requests == asked  # what was lost comes from the cache
    assert "cut off by a crash" in caplog.text
    assert (first["n"], again["n"], again["accuracy"]) == (12, 12, 1.0)


def test_a_run_of_another_configuration_is_refused_with_the_key_that_differs(call: Any) -> None:
    with LocalEngine(answered) as server:
        call("eval", sums(), *on(server), *PLAIN, "--run-dir", "run")
        status, _, err = call("eval", sums(), *on(server), *PLAIN, "--run-dir", "run", "--samples", "2")
    assert status == 2
    assert "evaluation.samples is 1 there and 2 now" in err


def test_a_livecodebench_version_and_window_are_given_in_the_name(call: Any) -> None:
    def row(number: int, day: str) -> dict[str, Any]:
        return {
            "question_id": str(number),
            "question_content": f"Print {number}.",
            "contest_date": f"{day}T00:00:00",
            "starter_code": "",
            "public_test_cases": json.dumps([{"input": "", "output": str(number), "testtype": "stdin"}]),
            "private_test_cases": "[]",
            "metadata": "{}",
        }

    file = write("lcb.jsonl", row(1, "2024-08-01"), row(2, "2024-11-15"), row(3, "2025-03-01"))
    name = "livecodebench:release_v5:2024-10-01:2025-02-28"
    status, out, _ = call("data", "show", name, "--data-file", file, "--json")
    assert status == 0
    assert [each["problem"]["text"].split(".")[0] for each in json.loads(out)] == ["Print 2"]
