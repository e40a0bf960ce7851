"""When two answers are the same."""

from __future__ import annotations

import pytest

from coda.program.answers import aequivalent, equivalent, group, normal


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("42", "42.0"), ("1/2", "0.5"), (r"\frac12", ".5"), (r"\dfrac{2}{4}", "1/2"), ("1,234", "1234"),
        ("$18.90", "18.9"),
        (r"10{,}000", "10000"), (r"32,\!348", "32348"), ("50%", "1/2"), ("50%", "50"), (r"50\%", "50"),
        ("12 apples", "12"),
        ("12 cm", "12"), (r"12\text{ cm}", "12"), ("1.5 million", "1500000"), ("3 1/2", "7/2"), ("−3", "-3"),
        ("+5", "5"),
        ("0.333333", "1/3"), ("007", "7"), (r"90^\circ", "90"), ("90°", "90"), ("x = 5", "5"), ("x^2+1", "1 + x**2"),
        ("2*sqrt(3)/3", r"\frac{2}{\sqrt{3}}"), ("2pi", r"2\pi"), (r"\{2, 1\}", "1, 2"), ("[1, 2]", "1,2"),
        ("1 and 2", "2, 1"),
        (r"(-\infty, 2]", r"(-\infty,2]"), ("3:4", "3/4"), (r"2^{10}", "1024"), (r"\sqrt{50}", r"5\sqrt{2}"),
        ("5!", "120"),
        ("East", r"\text{east}"), ("(A)", r"\text{(A)}"), ("y = 2x+1", "2x + 1"), (r"\$5", "5"), ("€5", "5"),
        ("3.", "3"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"), ("1 < x < 2", "(1,2)"),
        (r"x \in [1,2]", "[1,2]"), ("1.5e-05", "0.000015"), ("2e+3", "2000"), ("(-3)", "-3"),
        ("0.30000000000000004", "0.3"),
    ],
)  # fmt: skip
async def test_the_same_in_mathematics(answer: str, reference: str) -> None:
    assert await aequivalent(answer, reference, "math")


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("42", "43"), ("1/2", "0.51"), ("(1,2)", "(2,1)"), ("[1,2]", "(1,2)"), ("x+1", "x-1"), ("x", "y"),
        ("50%", "0.05"),
        ("listen", "silent"), ("-3", "3"), ("1,2", "1,2,3"), ("0.33", "1/3"), ("", "1"), ("1", "2x + z = 1"),
        ("2^{10}", "1000"),
        (r"\frac{1}{0}", "1"), ("1000000007", "1000000008"), ("east", "west"), ("{", "}"), ("the", "42"),
    ],
)  # fmt: skip
async def test_not_the_same_in_mathematics(answer: str, reference: str) -> None:
    assert not await aequivalent(answer, reference, "math")


def test_the_reference_is_the_second() -> None:
    """An equation's right side is an answer to "what is x", and no answer to "which equation"."""
    assert equivalent("2x + z = 1", "1", "math")
    assert not equivalent("1", "2x + z = 1", "math")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("B", "(b)", True), ("the atom", "B", True), ("A", "B", False), ("nonsense", "B", False), ("x", "X.", True)],
)
def test_options_are_the_same_when_they_name_the_same_letter(a: str, b: str, same: bool) -> None:
    assert equivalent(a, b, "choice", ("the cell", "the atom")) is same


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("The Nile.", "nile", True), ("1,000", "1000", True), ("New  York", "new york", True), ("a b", "ab", False),
        ("ﬁne", "fine", True), ("nile", "amazon", False),
    ],
)  # fmt: skip
def test_texts_are_the_same_but_for_case_spacing_and_punctuation(a: str, b: str, same: bool) -> None:
    assert equivalent(a, b, "text") is same


def test_programs_are_the_same_when_their_text_is() -> None:
    assert equivalent("print(1)  \n", "print(1)", "code")
    assert not equivalent("print(1)", "print( 1)", "code")


async def test_group_joins_equal_values_however_they_are_written() -> None:
    answers = ["3", "1/2", None, "0.5", r"\frac{1}{2}", "3.0", "x + 1", "1 + x", "7"]
    assert await group(answers, "math") == [[1, 3, 4], [0, 5], [6, 7], [8]]


async def test_group_is_stricter_than_grading() -> None:
    """What follows from one answer need not be the answer: both directions must hold."""
    assert await group(["1", "2x + z = 1"], "math") == [[0], [1]]


async def test_group_of_nothing_is_empty() -> None:
    assert await group([], "math") == []
    assert await group([None, None], "math") == []


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("$1,234.50", "1234.5"), ("38.0", "38"), (r"\frac{2}{4}", "1/2"), ("50 percent", "50%"), (" $x^2$. ", "x^2"),
        ("-0.50", "-0.5"), ("0.05", "0.05"), ("12 apples", "12"), ("100", "100"),
    ],
)  # fmt: skip
def test_plain_numbers_have_one_normal_form(answer: str, shown: str) -> None:
    assert normal(answer, "math") == shown


def test_the_normal_form_of_a_choice_is_its_letter() -> None:
    assert normal("the atom", "choice", ("the cell", "the atom")) == "B"
    assert normal("what?", "choice", ("the cell", "the atom")) == "what?"


ENDLESS = (
    *("1" + "a" * 1990 + "!", "1" + " a" * 900 + "!", "1" * 5000, "(" * 1999),
    *(";" * 300_000, "$" * 300_000, " " * 300_000 + "x"),
)


@pytest.mark.parametrize("answer", ENDLESS, ids=range(len(ENDLESS)))
async def test_answers_without_end_are_compared_in_time(answer: str) -> None:
    """A pattern that took time in a power of the length would keep this test for hours."""
    for task in ("math", "choice", "text", "code"):
        normal(answer, task)
        assert await aequivalent(answer, answer + "2", task) is False
