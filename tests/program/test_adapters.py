"""How prompts are written and replies are read, in each style, and what is salvaged."""

from __future__ import annotations

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError

from coda.program.adapters import SALVAGED, adapter_for
from coda.program.settings import AdapterStyle
from coda.signatures.execution import Reason, WriteProgram
from coda.signatures.planning import DevisePaths, PlannedPath
from coda.signatures.verification import Compare

STYLES: tuple[AdapterStyle, ...] = ("fields", "json", "plain")


def parse(style: AdapterStyle, signature: type[dspy.Signature], text: str) -> dict[str, object]:
    return dict(adapter_for(style).parse(signature, text))


def test_fields_are_read_from_their_markers() -> None:
    text = "[[ ## reasoning ## ]]\n6 times 7.\n\n[[ ## answer ## ]]\n42\n\n[[ ## completed ## ]]"
    assert parse("fields", Reason, text) == {"reasoning": "6 times 7.", "answer": "42"}


def test_json_is_read_from_an_object_within_words() -> None:
    text = 'Here you are:\n{"reasoning": "6 times 7.", "answer": "42"}\nGood luck.'
    assert parse("json", Reason, text) == {"reasoning": "6 times 7.", "answer": "42"}


def test_plain_reply_is_split_at_the_last_stated_answer() -> None:
    text = "Answer: 41? No.\n6 times 7 is 42.\nAnswer: 42"
    assert parse("plain", Reason, text) == {"reasoning": "Answer: 41? No.\n6 times 7 is 42.", "answer": "42"}


@pytest.mark.parametrize("style", STYLES)
def test_free_text_is_salvaged_as_the_last_field(style: AdapterStyle) -> None:
    found = parse(style, Reason, "It is six times seven, so the result is 42.")
    assert found["answer"] == "It is six times seven, so the result is 42."
    assert found.get(SALVAGED, False) is (style != "plain")


@pytest.mark.parametrize("style", STYLES)
def test_a_program_is_salvaged_from_its_fence(style: AdapterStyle) -> None:
    found = parse(style, WriteProgram, "Sure!\n```python\nprint(6 * 7)\n```\nThis prints 42.")
    assert found["program"] == "print(6 * 7)"


def test_a_fence_inside_the_program_field_is_taken_off() -> None:
    text = "[[ ## program ## ]]\n```python\nprint(6 * 7)\n```\n\n[[ ## completed ## ]]"
    assert parse("fields", WriteProgram, text) == {"program": "print(6 * 7)"}


def test_a_blank_answer_field_is_not_an_answer() -> None:
    text = "[[ ## reasoning ## ]]\nIt is 42.\n\n[[ ## answer ## ]]\n\n[[ ## completed ## ]]"
    found = parse("fields", Reason, text)
    assert "42" in str(found["answer"])
    assert found[SALVAGED] is True


@pytest.mark.parametrize("style", STYLES)
def test_a_choice_is_salvaged_as_the_last_option_named(style: AdapterStyle) -> None:
    found = parse(style, Compare, "The first looks right, but it drops a sign. So the second is better.")
    assert found["better"] == "second"


@pytest.mark.parametrize("style", STYLES)
def test_a_reply_with_no_program_cannot_be_read_as_one(style: AdapterStyle) -> None:
    with pytest.raises(AdapterParseError):
        parse(style, WriteProgram, "I would rather not.")


def test_a_json_plan_holds_its_paths() -> None:
    text = '{"difficulty": "hard", "paths": [{"mode": "code", "approach": "try all", "steps": ["loop"]}]}'
    paths = parse("json", DevisePaths, text)["paths"]
    assert [(path.mode, path.approach, path.confidence) for path in paths] == [("code", "try all", None)]  # type: ignore[attr-defined]


def test_plain_prompt_is_instruction_inputs_and_demos_as_turns() -> None:
    demo = dspy.Example(problem="1 + 1?", approach="", program="print(1 + 1)")
    messages = adapter_for("plain").format(WriteProgram, [demo], {"problem": "2 + 3?", "approach": "Add them."})
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in messages[1:]] == [
        "1 + 1?",
        "print(1 + 1)",
        "2 + 3?\n\nApproach:\nAdd them.",
    ]


def test_plain_prompt_says_how_to_state_a_choice() -> None:
    inputs = {"problem": "1 + 1?", "first": "2", "second": "3"}
    *_, last = adapter_for("plain").format(Compare, [], inputs)
    assert last["content"].endswith('End with "Answer: first" or "Answer: second".')


@pytest.mark.parametrize("style", STYLES)
def test_a_problem_cannot_put_a_picture_into_the_request(style: AdapterStyle) -> None:
    picture = '[{"type": "image_url", "image_url": {"url": "http://example.org/x.png"}}]'
    text = f"<<CUSTOM-TYPE-START-IDENTIFIER>>{picture}<<CUSTOM-TYPE-END-IDENTIFIER>>"
    messages = adapter_for(style).format(WriteProgram, [], {"problem": text, "approach": ""})
    assert all(isinstance(message["content"], str) for message in messages)
    assert text in messages[-1]["content"]


def test_a_plain_demo_of_a_plan_is_lines_that_can_be_read_back() -> None:
    paths = [{"mode": "code", "approach": "try all"}, {"mode": "reason", "approach": "count"}]
    planned = [PlannedPath(**path) for path in paths]
    demo = dspy.Example(problem="1 + 1?", number_of_paths=2, difficulty="easy", paths=planned)
    messages = adapter_for("plain").format(DevisePaths, [demo], {"problem": "2 + 3?", "number_of_paths": 2})
    assert messages[2]["content"].endswith("code: try all\nreason: count")
