"""A program whose functions are called from outside.

The program is loaded as a module, in this process; the tests are in another one and see what it returns as plain data.
A program can send whatever it likes over the wire: that only decides what its functions return.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import types
from collections.abc import Callable
from typing import Any

from coda.program.tools.guest import plain, script
from coda.program.tools.guest.wire import Wire

MODULE = "program"
_CHANGEABLE = (list, dict, set, bytearray)


def run(job: dict[str, Any], extra: list[int]) -> None:
    """Load ``job["program"]`` and answer questions over the wire until the tests are done. Never returns."""
    server = Server(Wire(extra[0]), script.prepare(job["program"], MODULE))
    server.load(job["program"])
    server.answer()
    script.leave(0)


class Server:
    """Holds the program's objects, and does with them what the tests ask for.

    Args:
        wire: The connection to the tests.
        module: The program's module, still empty.
    """

    def __init__(self, wire: Wire, module: types.ModuleType) -> None:
        self._wire = wire
        self._names = module.__dict__
        self._objects: list[Any] = []
        self._questions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "name": lambda ask: {"value": self._encode(self._names[ask["name"]])},
            "attribute": lambda ask: {"value": self._encode(getattr(self._objects[ask["id"]], ask["name"]))},
            "set": self._set,
            "call": self._call,
            "operator": lambda ask: {"value": self._encode(_OPERATORS[ask["name"]](*self._decode(ask["args"])))},
        }

    def load(self, program: str) -> None:
        """Run the program's top level, and say what it defines or how it failed."""
        try:
            exec(compile(program, script.NAME, "exec"), self._names)  # noqa: S102 - this is the point
        except BaseException as error:  # a program may raise anything
            script.show(error)
            self._wire.send({"failed": script.describe(error)})
            script.leave(1)
        self._wire.send({"defines": {name: _kind(value) for name, value in list(self._names.items())}})

    def answer(self) -> None:
        """Answer until the other end closes."""
        with contextlib.suppress(OSError, ValueError):
            while (ask := self._wire.receive()) is not None:
                self._wire.send(self._reply(ask))

    def _reply(self, ask: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._questions[ask["do"]](ask)
        except BaseException as error:  # the program's functions may raise anything
            return {"raised": self._raised(error)}

    def _call(self, ask: dict[str, Any]) -> dict[str, Any]:
        args, keywords = self._decode(ask["args"]), self._decode(ask["kwargs"])
        value = self._encode(self._objects[ask["id"]](*args, **keywords))
        changed = {}
        for place, (before, now) in enumerate(zip(ask["args"], args, strict=True)):
            if isinstance(now, _CHANGEABLE) and (after := self._encode(now)) != before:
                changed[str(place)] = after
        return {"value": value, "changed": changed}

    def _set(self, ask: dict[str, Any]) -> dict[str, Any]:
        setattr(self._objects[ask["id"]], ask["name"], self._decode(ask["value"]))
        return {"value": None}

    def _raised(self, error: BaseException) -> dict[str, Any]:
        try:
            arguments = [plain.encode(argument, _refuse) for argument in error.args]
        except Exception:  # the error is the program's own class, and can be hostile
            arguments = []
        return {
            "classes": [kind.__name__ for kind in type(error).__mro__],
            "arguments": arguments,
            "text": script.describe(error),
        }

    def _encode(self, value: Any) -> plain.Data:
        return plain.encode(value, self._refer)

    def _refer(self, value: Any) -> plain.Data:
        self._objects.append(value)
        classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
        return {
            "t": "object",
            "v": {
                "id": len(self._objects) - 1,
                "kind": _kind(value),
                "name": str(getattr(value, "__name__", "")),
                "classes": [f"{kind.__module__}.{kind.__qualname__}" for kind in classes],
            },
        }

    def _decode(self, data: plain.Data) -> Any:
        return plain.decode(data, self._resolve)

    def _resolve(self, tag: str, data: plain.Data) -> Any:
        if tag == "object":
            return self._objects[data]
        if tag == "known":
            return getattr(importlib.import_module(data[0]), data[1])
        if tag == "function":
            return lambda *args, **kwargs: self._call_back(data, args, kwargs)
        raise ValueError(f"no such value: {tag}")

    def _call_back(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that a test passed to the program: it runs there."""
        self._wire.send({"call": number, "args": self._encode(list(args)), "kwargs": self._encode(kwargs)})
        while (message := self._wire.receive()) is not None:
            if "do" in message:  # The function calls the program again.
                self._wire.send(self._reply(message))
            elif "raised" in message:
                raise RuntimeError(message["raised"])
            else:
                return self._decode(message["value"])
        raise EOFError("the tests have ended")


def _refuse(value: Any) -> plain.Data:
    raise plain.NotPlain(type(value).__name__)


def _kind(value: Any) -> list[str]:
    """What a name of the program stands for: its kind, and what the tests need to know about it."""
    if isinstance(value, types.ModuleType):
        return ["module", value.__name__]
    if isinstance(value, type):
        if issubclass(value, BaseException):
            return ["exception", *(kind.__name__ for kind in value.__mro__)]
        return ["class", value.__module__]
    return ["function" if callable(value) else "value", str(getattr(value, "__module__", ""))]


_OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and_", "or_", "xor", "neg", "pos", "abs", "invert", "getitem", "setitem", "delitem", "contains"),
    )
} | {"len": len, "iter": iter, "next": next, "bool": bool, "str": str, "repr": repr, "hash": hash, "int": int}
