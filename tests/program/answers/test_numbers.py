"""The fast path for plain numbers decides as math-verify does, or leaves the decision to it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coda.program.answers.checker import Checker, shared_checker
from coda.program.answers.numbers import Number, number, same_number, tidy
from coda.program.concurrency import run_sync

integers = st.integers(-30, 30)
written = st.one_of(
    integers.map(str),
    st.integers(1000, 2_000_000).map("{:,}".format),
    st.tuples(integers, st.integers(1, 12)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda pair: rf"\frac{{{pair[0]}}}{{{pair[1]}}}"),
    st.tuples(integers, st.integers(1, 12)).map(lambda pair: rf"-\dfrac{{{pair[0]}}}{{{pair[1]}}}"),
    st.decimals(-20, 20, places=2).map(str),
    st.decimals(-1, 1, places=7).map("{:f}".format),
    integers.map("{}%".format),
    integers.map(r"{}\%".format),
    integers.map("${}".format),
    integers.map("{}.0".format),
)


@pytest.fixture(scope="module")
def checker() -> Checker:
    return shared_checker()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written, written)
def test_the_fast_path_agrees_with_math_verify(checker: Checker, a: str, b: str) -> None:
    one, two = number(tidy(a)), number(tidy(b))
    assert one is not None
    assert two is not None
    decided = same_number(one, two)
    if decided is not None:
        assert run_sync(checker.same(tidy(b), tidy(a))) is decided


@settings(max_examples=200, deadline=None)
@given(written)
def test_a_number_equals_itself_in_every_notation(a: str) -> None:
    value = number(tidy(a))
    assert value is not None
    assert same_number(value, value)
    again = number(tidy(str(value)))
    assert again is not None
    assert again.value == value.value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("1,234", Number(Fraction(1234), exact=True)),
        (".5", Number(Fraction(1, 2), exact=False)),
        ("7.", Number(Fraction(7), exact=True)),
        ("-3/4", Number(Fraction(-3, 4), exact=True)),
        (r"\frac12", Number(Fraction(1, 2), exact=True)),
        ("25 percent", Number(Fraction(25), exact=True, percent=True)),
        ("12 km/h", Number(Fraction(12), exact=True)),
    ],
)
def test_numbers_are_read(answer: str, value: Number) -> None:
    assert number(tidy(answer)) == value


@pytest.mark.parametrize(
    "answer", ["", "x", "1,23", "1/0", "2x", "1e", "3 4", "--3", ".", "%", "12:30", "9" * 400, "2 and 3"]
)
def test_what_is_no_plain_number_is_left_to_mathematics(answer: str) -> None:
    assert number(tidy(answer)) is None
