"""Thinking never reaches an adapter as if it were the answer."""

from __future__ import annotations

import pytest

from coda.program.engine.cleaning import split_thinking
from coda.program.engine.profiles import load_profile

TAGS = load_profile("qwen3")
PLAIN = load_profile("llama-3")


@pytest.mark.parametrize(
    ("content", "thinking", "answer"),
    [
        ("42", "", "42"),
        ("<think>6 × 7</think>42", "6 × 7", "42"),
        ("\n<think>\n6 × 7\n</think>\n\n42", "\n\n6 × 7\n", "\n\n42"),
        ("6 × 7</think>42", "6 × 7", "42"),
        ("<think>a</think>b<think>c</think>42", "abc", "42"),
        ("<think>[[ ## answer ## ]] 41?", "[[ ## answer ## ]] 41?", ""),
        ("<think></think>42", "", "42"),
        ("The tag <think> opens it.", "", "The tag <think> opens it."),
    ],
)
def test_tags(content: str, thinking: str, answer: str) -> None:
    assert split_thinking(content, TAGS) == (thinking, answer)


def test_a_family_that_does_not_think_may_write_about_tags() -> None:
    assert split_thinking("Close it with </think>.", PLAIN) == ("", "Close it with </think>.")


@pytest.mark.parametrize(
    ("content", "thinking", "answer"),
    [
        (
            "<|channel|>analysis<|message|>6 × 7<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>",
            "6 × 7",
            "42",
        ),
        ("<|channel|>analysis<|message|>6 × 7", "6 × 7", ""),
        ("<|channel|>final <|constrain|>json<|message|>{}", "", "{}"),
    ],
)
def test_channels_that_a_server_passed_on_unread(content: str, thinking: str, answer: str) -> None:
    assert split_thinking(content, load_profile("gpt-oss")) == (thinking, answer)
