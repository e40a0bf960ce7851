r"""Reading the answer from a text: ``\boxed`` first, then what is stated, then what the task suggests."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coda.program.answers import extract, normal
from coda.program.types import Task

PIECES = (
    r"\boxed{", r"\boxed ", "}", "{", "$", "$$", r"\(", r"\)", r"\[", r"\]", "the answer is ", "Answer: ",
    "#### ", "\n",
    "```python\n", "```\n", "print(", "42", "1/2", r"\frac{1}{2}", "-", "1,000", "%", "(B)", "A. ", "mitochondria", "=",
    r"\text{", " ", ".", "x", "**", "\\", "é", "\x00", "\ud800", "²",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{5}. Answer: 6", "5"),
        (r"\boxed{4} is wrong, it is \boxed{5}", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"$\boxed{5}$ and $\boxed{6}$", "5, 6"),
        (r"\boxed{$1{,}200}", "1200"),
        (r"\fbox{7}", "7"),
        (r"\boxed 9.", "9"),
        (r"The answer is 8, so \boxed{}", "8"),
        (r"so we get 12 and \boxed{12", "12"),
    ],
)
def test_the_last_closed_box_that_holds_something_wins(text: str, answer: str) -> None:
    assert extract(text, "math") == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 42.", "42"),
        ("The answer is 41. No: the answer is 42, since 6 * 7 = 42.", "42"),
        ("**Final Answer:** $42$ apples in 7 baskets", "42"),
        ("Answer:\n\n42\n", "42"),
        ("The final answer is: $12 per hour", "12"),
        ("the answer to the question is therefore 3/4", "3/4"),
        (r"The answer is \(x = \frac{3}{4}\).", r"\frac{3}{4}"),
        (r"The answers are $x^2 + 1$ for all x.", "x^2 + 1"),
        ("The answer is (3, 4).", "(3, 4)"),
        ("The answer is -7.5 degrees.", "-7.5"),
        ("The answer is 1,234,567.", "1234567"),
        ("The answer is east.", "east"),
        ("I hope the answer is right. We get 12.", "12"),
        ("Work: 3 + 4 = 7\n#### 7", "7"),
        ("#### Step 1: take 5\nThen 6", "6"),
    ],
)
def test_without_a_box_the_last_stated_answer_wins(text: str, answer: str) -> None:
    assert extract(text, "math") == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("38\n", "38"),
        ("Tom has 5 + 3 = <<5+3=8>>8 eggs.\nHe sells 2, so 6 are left.", "6"),
        ("A: 26", "26"),
        ("The total cost is $18.90", "18.90"),
        ("x = - 42", "-42"),
        ("It is 5 because 2+3=5.", "5"),
        ("He walks 3 1/2 hours", "3 1/2"),
        ("That makes 25%.", "25%"),
        ("I get\n\\[\nx = 2\\sqrt{3}\n\\]\nas wanted", r"2\sqrt{3}"),
        ("so $y = x + 1$ where $n$ is even", "x + 1"),
        ("- 42", "42"),
        ("[2, 3]", "[2, 3]"),
        ("x**2 + 1", "x**2 + 1"),
        ("Fraction(3, 4)", "3/4"),
        ("1.5e-05", "0.000015"),
        ("The distance is 3e8 metres.", "300000000"),
        ("east", "east"),
        (r"\text{not possible}", r"\text{not possible}"),
    ],
)
def test_without_a_statement_the_last_number_or_expression_counts(text: str, answer: str) -> None:
    assert extract(text, "math") == answer


@pytest.mark.parametrize("text", ["", "   \n", "None\n", "I do not know.", "nan", "...", r"\boxed{}"])
def test_a_text_without_an_answer_has_none(text: str) -> None:
    assert extract(text, "math") is None


CELL = ("the nucleus", "the mitochondria", "the cell wall", "the cell")


@pytest.mark.parametrize(
    "text",
    [
        "B", "(B)", "b)", "B.", "**B**", r"\boxed{B}", r"\boxed{\text{(B)}}", "Answer: B", "Answer: **B**",
        "The answer is B because cells need energy.", "The correct answer is (B) the mitochondria.",
        "B. the mitochondria", "the mitochondria", "The answer is the mitochondria.", r"\boxed{The Mitochondria}",
        "A looks right at first.\nBut energy comes from elsewhere. So it is B.", '{"answer": "B"}',
        "The answer is A. Wait, no: the answer is B.", "(A) is wrong, (C) too; option B it is", "I choose B",
    ],
)  # fmt: skip
def test_an_option_is_named_by_letter_by_text_or_by_both(text: str) -> None:
    assert extract(text, "choice", CELL) == "B"


def test_the_longest_option_that_is_named_counts() -> None:
    assert extract("It must be the cell wall.", "choice", CELL) == "C"


def test_options_that_are_numbers_are_named_by_their_value() -> None:
    assert extract("The answer is 0.5", "choice", ("2", "1/2", "5")) == "B"


@pytest.mark.parametrize(
    "text", ["", "A mixture of things happens.", "both the nucleus and the cell wall", "E", "I think so"]
)
def test_what_names_no_option_or_several_is_no_choice(text: str) -> None:
    assert extract(text, "choice", CELL) is None


def test_letters_go_up_to_j() -> None:
    assert extract("The answer is (J).", "choice") == "J"
    assert extract("Answer: I", "choice", tuple("0123456789")) == "I"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        ("  Two words.\n", "Two words"),
        ("I think so.\nAnswer: Paris, France.", "Paris, France"),
        (r"It is \boxed{\text{Paris}}", r"\text{Paris}"),
    ],
)
def test_a_text_answer_is_what_is_stated_or_the_whole(text: str, answer: str) -> None:
    assert extract(text, "text") == answer


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30), st.sampled_from(Task.__args__))
@example(["-" * 100, "1"], "code")
@example(["(" * 5000], "code")
def test_no_text_makes_extraction_fail(pieces: list[str], task: Task) -> None:
    found = extract("".join(pieces), task, ("mitochondria", "42"))
    assert found is None or (found and normal(found, task, ("mitochondria", "42")))


@pytest.mark.parametrize(
    "piece", [*PIECES, "answer to ", "1 1/2 ", "def f():\n", "```python\nx = 1\n```\n", "a b: ", "- "]
)
def test_a_text_of_a_megabyte_is_read_in_time(piece: str) -> None:
    """A pattern that took time in the square of the length would keep this test for hours."""
    text = piece * (1_000_000 // len(piece))
    for task in Task.__args__:
        extract(text, task, ("mitochondria", "42"))
