"""Values as they cross from one process to another: data, never objects.

A value becomes JSON and is built anew on the other side, from nothing but exact built-in types (and a few of the
standard library's that are pure data). Whatever a subclass overrides stays behind. Other objects cross as references,
which the caller of `encode` makes and the caller of `decode` resolves.

    null, true, "text", 1, 1.5, [..]    as they are
    {"t": tag, "v": data}               everything else
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import math
import numbers
import sys
from collections.abc import Callable
from typing import Any

Data = Any
"""What `json` reads and writes."""

DEEPEST = 64
_SMALL = 1 << 53
_MOST_BITS = 1 << 24

_ARRAY_KINDS = "biufcU"
_DATES = (datetime.datetime, datetime.date, datetime.time)
_CONTAINERS: dict[type, str] = {
    tuple: "tuple",
    set: "set",
    frozenset: "frozenset",
    collections.deque: "deque",
}


class NotPlain(TypeError):
    """A value cannot cross as data."""


def encode(value: Any, refer: Callable[[Any], Data], depth: int = 0) -> Data:
    """Turn a value into data; ``refer`` is asked about objects that are none.

    Raises:
        NotPlain: It is nested too deeply (or contains itself), or ``refer`` will not have it.
    """
    if depth > DEEPEST:
        raise NotPlain(f"a value nested more than {DEEPEST} deep, or containing itself, cannot cross to the test")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_SMALL < value < _SMALL else {"t": "int", "v": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"t": "float", "v": repr(value)}
    if kind is list:
        return [encode(item, refer, depth + 1) for item in value]
    if kind in _CONTAINERS:
        return {"t": _CONTAINERS[kind], "v": [encode(item, refer, depth + 1) for item in value]}
    if kind is dict:
        pairs = [[encode(k, refer, depth + 1), encode(v, refer, depth + 1)] for k, v in value.items()]
        return {"t": "dict", "v": pairs}
    scalar = _scalar(value, kind)
    if scalar is not None:
        return scalar
    if kind.__module__.split(".")[0] == "numpy" and "numpy" in sys.modules:
        return _from_numpy(value, refer, depth)
    base = _reduced(value)
    return refer(value) if base is None else encode(base[0], refer, depth + 1)


def _scalar(value: Any, kind: type) -> Data | None:
    """Data for exact types that hold no other values."""
    if kind is complex:
        return {"t": "complex", "v": [repr(value.real), repr(value.imag)]}
    if kind is bytes or kind is bytearray:
        return {"t": kind.__name__, "v": value.decode("latin-1")}
    if kind is range:
        return {"t": "range", "v": [hex(value.start), hex(value.stop), hex(value.step)]}
    if kind is fractions.Fraction:
        return {"t": "fraction", "v": [hex(value.numerator), hex(value.denominator)]}
    if kind is decimal.Decimal:
        return {"t": "decimal", "v": str(value)}
    if kind in _DATES:
        return {"t": kind.__name__, "v": value.isoformat()}
    if kind is datetime.timedelta:
        return {"t": "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    return None


def _reduced(value: Any) -> tuple[Any] | None:
    """The built-in value inside an instance of a subclass, or a number of a library; else ``None``."""
    if isinstance(value, int):
        return (int.__add__(value, 0),)
    for kind, plainly in _BASES.items():
        if isinstance(value, kind):
            return (plainly(value),)
    if isinstance(value, numbers.Integral):
        return (int(value),)
    if isinstance(value, numbers.Rational):
        return (fractions.Fraction(int(value.numerator), int(value.denominator)),)
    if isinstance(value, numbers.Real):
        return (float(value),)
    return None


def _from_numpy(value: Any, refer: Callable[[Any], Data], depth: int) -> Data:
    """Data for a number or an array of numpy's."""
    numpy = sys.modules["numpy"]
    if isinstance(value, numpy.ndarray):
        if value.dtype.kind not in _ARRAY_KINDS:
            return encode(value.tolist(), refer, depth + 1)
        items = encode(value.ravel().tolist(), refer, depth + 1)
        return {"t": "array", "v": [value.dtype.str, list(value.shape), items]}
    item = value.item() if isinstance(value, numpy.generic) else value
    return refer(value) if type(item).__module__ == "numpy" else encode(item, refer, depth + 1)


_BASES: dict[type, Callable[[Any], Any]] = {
    float: float.__pos__,
    str: str.__str__,
    complex: complex.__pos__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    list: lambda value: list(list.__iter__(value)),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    set: lambda value: set(set.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    collections.deque: lambda value: collections.deque(collections.deque.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}
"""How to get the built-in value out of an instance of a subclass, past whatever that overrides."""


def decode(data: Data, resolve: Callable[[str, Data], Any], depth: int = 0) -> Any:
    """Build the value anew; ``resolve`` gets the tag and data of references.

    Raises:
        ValueError: The data was not made by `encode`.
    """
    if depth > DEEPEST + 2:
        raise ValueError("nested too deeply")
    if data is None or isinstance(data, bool | str | int | float):
        return data
    if isinstance(data, list):
        return [decode(item, resolve, depth + 1) for item in data]
    if not (isinstance(data, dict) and data.keys() == {"t", "v"} and isinstance(data["t"], str)):
        raise ValueError("no such value")
    tag, inner = data["t"], data["v"]
    try:
        if tag in _BUILDERS:
            return _BUILDERS[tag](inner)
        if tag in _COLLECTIONS:
            return _COLLECTIONS[tag]([decode(item, resolve, depth + 1) for item in inner])
        if tag == "dict":
            return {decode(k, resolve, depth + 1): decode(v, resolve, depth + 1) for k, v in inner}
    except (TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"no such value: {error}") from error
    return resolve(tag, inner)


def _integer(text: str) -> int:
    if len(text) > _MOST_BITS // 4:
        raise ValueError("an integer too long")
    return int(text, 16)


def _array(parts: list[Any]) -> Any:
    import numpy as np

    kind, shape, items = parts
    if not isinstance(kind, str) or kind.strip("<>|=")[:1] not in tuple(_ARRAY_KINDS):
        raise ValueError("no such array")
    return np.array(items, dtype=np.dtype(kind)).reshape(shape)


_COLLECTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": collections.deque,
    "array": _array,
}

_BUILDERS: dict[str, Callable[[Any], Any]] = {
    "int": _integer,
    "float": float,
    "complex": lambda v: complex(float(v[0]), float(v[1])),
    "bytes": lambda v: v.encode("latin-1"),
    "bytearray": lambda v: bytearray(v.encode("latin-1")),
    "range": lambda v: range(*(_integer(part) for part in v)),
    "fraction": lambda v: fractions.Fraction(_integer(v[0]), _integer(v[1])),
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda v: datetime.timedelta(days=v[0], seconds=v[1], microseconds=v[2]),
}
