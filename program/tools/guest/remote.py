"""What the tests see of the program's objects: proxies, which ask the process where they live.

An object that is no plain data (an instance of the program's own class, an iterator, a function) stays where it is; a
proxy stands for it. It is the program that answers for it, so it must not learn what the test expects:

- It never equals plain data.
- Operators work for instances of classes that the tests name: those classes are what is tested. Of two such objects
  the program says whether they are equal, or which is less.
- An operator that is given plain data must return an object again, and what is computed from that too; else
  ``abs(f(x) - 5) < 0.1`` would let the program see the 5, and say that the difference is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coda.program.tools.guest.link import Link

_SPECIAL = frozenset(
    {"__annotations__", "__defaults__", "__dict__", "__doc__", "__module__", "__name__", "__qualname__"}
)


class Remote:
    """An object of the program.

    Args:
        link: The connection to it.
        number: Its number there.
        name: Its name, for a function or a class.
        classes: The names of its classes, its own first.
        is_class: Whether it is a class itself.
    """

    __slots__ = ("_link", "_told", "coda_classes", "coda_id", "coda_is_class", "coda_name")

    def __init__(self, link: Link, number: int, name: str, classes: tuple[str, ...], is_class: bool) -> None:
        for slot, value in zip(Remote.__slots__, (link, False, classes, number, is_class, name), strict=True):
            object.__setattr__(self, slot, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, in the program's process."""
        return self._link.call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _SPECIAL:  # Libraries would follow the program's pointers.
            raise AttributeError(name)
        return self._link.ask({"do": "attribute", "id": self.coda_id, "name": name})

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.ask({"do": "set", "id": self.coda_id, "name": name, "value": self._link.encode(value)})

    def __hash__(self) -> int:
        return int(self._link.operate("hash", self))

    def __instancecheck__(self, instance: object) -> bool:
        return self.coda_is_class and isinstance(instance, Remote) and self.coda_classes[0] in instance.coda_classes

    def __contains__(self, item: object) -> bool:
        if _is_known(self) and not self._told:
            return bool(self._link.operate("contains", self, item))
        return any(member is item or member == item for member in self)  # type: ignore[attr-defined]


def _is_known(value: object) -> bool:
    """Whether it is an instance of a class that the tests name."""
    return isinstance(value, Remote) and any(name in value._link.known for name in value.coda_classes)


def _told(result: Any) -> Remote:
    """Mark an object that has been given a value of the test; plain data in its place cannot be trusted."""
    if not isinstance(result, Remote):
        raise TypeError(
            "an operator of the program turned a value of the test into plain data: the test cannot trust it"
        )
    object.__setattr__(result, "_told", True)
    return result


def _comparison(name: str) -> Any:
    def method(self: Remote, other: object) -> Any:
        if not (_is_known(self) and _is_known(other)):
            return NotImplemented
        return bool(self._link.operate(name, self, other))

    return method


def _binary(name: str, *, reflected: bool = False) -> Any:
    def method(self: Remote, other: object) -> Any:
        if not _is_known(self):
            return NotImplemented
        result = self._link.operate(name, *((other, self) if reflected else (self, other)))
        trusted = isinstance(other, Remote) and not other._told and not self._told
        return result if trusted else _told(result)

    return method


def _unary(name: str) -> Any:
    def method(self: Remote) -> Any:
        if not _is_known(self):
            raise TypeError(f"the program returned an object that {name} is not for")
        result = self._link.operate(name, self)
        return _told(result) if self._told else result

    return method


def _plainly(name: str) -> Any:
    def method(self: Remote, *args: Any) -> Any:
        return self._link.operate(name, self, *args)

    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _comparison(_name))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"):
    setattr(Remote, f"__{_name.rstrip('_')}__", _binary(_name))
    setattr(Remote, f"__r{_name.rstrip('_')}__", _binary(_name, reflected=True))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Remote, f"__{_name}__", _unary(_name))
for _name in ("len", "iter", "next", "bool", "str", "repr", "int", "getitem", "setitem", "delitem"):
    setattr(Remote, f"__{_name}__", _plainly(_name))
