"""Values crossing as plain data: exact built-in types arrive, whatever was sent."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import json
import math
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coda.program.tools.guest import plain


def refuse(value: Any) -> Any:
    raise plain.NotPlain(type(value).__name__)


def unresolved(tag: str, _: Any) -> Any:
    raise ValueError(tag)


def crossed(value: Any) -> Any:
    """The value after its journey."""
    return plain.decode(json.loads(json.dumps(plain.encode(value, refuse))), unresolved)


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b)))


ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**400), max_value=10**400),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.complex_numbers(allow_nan=False),
    st.fractions(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
)
HASHABLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.tuples(st.integers(), st.text())
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=4),
        st.sets(HASHABLE, max_size=4),
        st.frozensets(HASHABLE, max_size=4),
        st.lists(inner, max_size=4).map(collections.deque),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    arrived = crossed(value)
    assert type(arrived) is type(value)
    assert repr(arrived) == repr(value) or same(arrived, value)


class Everything(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Shout(str):
    def __str__(self) -> str:
        return "other"

    def __repr__(self) -> str:
        return "other"


class Endless(list[int]):
    def __iter__(self) -> Any:
        while True:
            yield 1


class Colour(enum.IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Everything(7), 7),
        (Shout("said"), "said"),
        (Endless([1, 2]), [1, 2]),
        (Colour.RED, 1),
        (Point(3), (3,)),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (type("F", (float,), {})(0.5), 0.5),
        (type("B", (bytes,), {})(b"x"), b"x"),
    ],
)
def test_subclass_arrives_as_the_built_in_value_inside_it(value: Any, arrives: Any) -> None:
    arrived = crossed(value)
    assert type(arrived) is type(arrives)
    assert arrived == arrives


def test_numbers_and_arrays_of_libraries_arrive() -> None:
    np = pytest.importorskip("numpy")
    sympy = pytest.importorskip("sympy")
    assert crossed([np.int64(3), np.float64(0.5), np.bool_(True)]) == [3, 0.5, True]
    array = crossed(np.array([[1.5, float("nan")]]))
    assert (array.shape, str(array.dtype), array[0, 0]) == ((1, 2), "float64", 1.5)
    assert crossed([sympy.Integer(5), sympy.Rational(1, 3)]) == [5, fractions.Fraction(1, 3)]


def test_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(plain.NotPlain, match="containing itself"):
        plain.encode(loop, refuse)


@pytest.mark.parametrize("value", [object(), print, int, iter(()), datetime.UTC, decimal.Context()])
def test_other_objects_are_referred(value: Any) -> None:
    with pytest.raises(plain.NotPlain):
        plain.encode(value, refuse)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"t": "tuple"},
        {"t": 1, "v": 1},
        {"t": "tuple", "v": [], "x": 1},
        {"t": "unheard-of", "v": 1},
        {"t": "int", "v": "x"},
        {"t": "int", "v": "0x" + "f" * (1 << 23)},
        {"t": "int", "v": 5},
        {"t": "dict", "v": [[[], 1]]},
        {"t": "dict", "v": [1]},
        {"t": "set", "v": [[]]},
        {"t": "fraction", "v": ["0x1", "0x0"]},
        {"t": "bytes", "v": "\u1234"},
        {"t": "decimal", "v": "x"},
        {"t": "date", "v": "x"},
        {"t": "timedelta", "v": [10**20, 0, 0]},
        {"t": "complex", "v": []},
        {"t": "array", "v": ["O", [1], [1]]},
        {"t": "array", "v": ["<i8", [3], [1]]},
        {"t": "array", "v": ["<i8", ["x"], [1]]},
    ],
)
def test_data_of_another_form_is_refused(data: Any) -> None:
    with pytest.raises(ValueError):
        plain.decode(data, unresolved)


TAGS = st.sampled_from(["int", "dict", "tuple", "set", "range", "date", "bytes", "array", "decimal"])
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.fixed_dictionaries(
            {
                "t": st.sampled_from(["int", "dict", "tuple", "set", "range", "date", "bytes", "array", "decimal"]),
                "v": inner,
            }
        ),
    ),
    max_leaves=10,
)


@given(JSON)
def test_whatever_is_sent_either_arrives_or_is_refused(data: Any) -> None:
    with contextlib.suppress(ValueError):
        plain.decode(data, unresolved)


def test_deep_data_is_refused() -> None:
    data: Any = 1
    for _ in range(1000):
        data = [data]
    with pytest.raises(ValueError, match="deep"):
        plain.decode(data, unresolved)
