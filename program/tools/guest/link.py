"""How the tests ask the program: questions over the wire, plain data or proxies back."""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from coda.program.tools.guest import plain
from coda.program.tools.guest.remote import Remote
from coda.program.tools.guest.wire import Wire

_KNOWN = (builtins, math, operator)
_LONGEST = 200
_MOST_BASES = 16


class Gone(BaseException):
    """The program's process has ended. No exception of a test, so that no test handles it."""


class BadReply(BaseException):
    """The program's process sent something that no function returns. No test handles it."""


class RaisedByProgram(Exception):
    """An exception of a class that only the program knows; its name is in the text."""


class Link:
    """Asks the program, and remembers what was asked.

    Attributes:
        calls: The calls made since it was last cleared, as ``(call, what came)``.
        traceback: Where in the program the last exception came from.
        known: The program's classes that the tests name.
        broken: Set for good when the program has gone or has sent nonsense; a test may have hidden the exception.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._functions: list[Callable[..., Any]] = []
        self._exceptions: dict[str, type[BaseException]] = {}
        self.calls: list[tuple[str, str]] = []
        self.traceback = ""
        self.broken: Gone | BadReply | None = None
        self.known: set[str] = set()

    def defines(self) -> dict[str, list[str]]:
        """Wait for the program to load; its names with their kinds.

        Raises:
            Gone: It ended instead, or failed to load (with the traceback as argument).
        """
        message = self._next(None)
        if "failed" in message:
            raise self._break(Gone(str(message["failed"])))
        with self._parsing():
            return {str(name): [str(part) for part in kind] for name, kind in message["defines"].items()}

    def name(self, name: str) -> Any:
        """What a name of the program stands for; a class that is asked for by name is one that the tests know."""
        value = self.ask({"do": "name", "name": name})
        if isinstance(value, Remote) and value.coda_is_class:
            self.known.add(value.coda_classes[0])
        return value

    def operate(self, name: str, *args: Any) -> Any:
        """Apply an operator to objects of the program."""
        return self.ask({"do": "operator", "name": name, "args": self.encode(list(args))})

    def call(self, target: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the program; lists, dicts and sets that it changed are changed here too."""
        described = _described(target.coda_name or "function", args, kwargs)
        message = {"do": "call", "id": target.coda_id, "args": self.encode(list(args)), "kwargs": self.encode(kwargs)}
        try:
            reply = self._exchange(message)
        except Gone:
            self.calls.append((described, "ended the program"))
            raise
        except BaseException as error:
            self.calls.append((described, f"raised {type(error).__name__}: {short(error, text=True)}"))
            raise
        with self._parsing():
            for place, after in reply.get("changed", {}).items():
                _replace(args[int(place)], plain.decode(after, self._resolve))
        value = self.decode(reply["value"])
        self.calls.append((described, f"returned {short(value)}"))
        return value

    def ask(self, message: dict[str, Any]) -> Any:
        """Ask, and return the value that comes back."""
        return self.decode(self._exchange(message)["value"])

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        reply = self._next(message)
        while "call" in reply:
            reply = self._next(self._called_back(reply))
        if "raised" in reply:
            raise self._exception(reply["raised"])
        if "value" not in reply:
            raise self._break(BadReply("a message of another form"))
        return reply

    def _next(self, message: dict[str, Any] | None) -> dict[str, Any]:
        """Send a message, if there is one, and wait for the next one."""
        if self.broken is not None:
            raise self.broken
        try:
            if message is not None:
                self._wire.send(message)
            reply = self._wire.receive()
        except OSError:
            reply = None
        except (ValueError, MemoryError) as error:
            raise self._break(BadReply(str(error))) from error
        if reply is None:
            raise self._break(Gone())
        return reply

    def _break(self, error: Gone | BadReply) -> Gone | BadReply:
        self.broken = error
        return error

    @contextlib.contextmanager
    def _parsing(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError, MemoryError) as error:
            raise self._break(BadReply(str(error))) from error

    def _called_back(self, ask: dict[str, Any]) -> dict[str, Any]:
        with self._parsing():
            function = self._functions[ask["call"]]
            args, kwargs = plain.decode(ask["args"], self._resolve), plain.decode(ask["kwargs"], self._resolve)
        try:
            return {"value": self.encode(function(*args, **kwargs))}
        except Exception as error:  # a test's function; the program gets to know
            return {"raised": f"{type(error).__name__}: {error}"}

    def encode(self, value: Any) -> plain.Data:
        """Data for the program."""
        return plain.encode(value, self._refer)

    def _refer(self, value: Any) -> plain.Data:
        if isinstance(value, Remote):
            return {"t": "object", "v": value.coda_id}
        name = getattr(value, "__name__", None)
        for module in _KNOWN:
            if isinstance(name, str) and getattr(module, name, None) is value:
                return {"t": "known", "v": [module.__name__, name]}
        if isinstance(value, types.FunctionType | types.MethodType) or _belongs_to_container(value):
            self._functions.append(value)
            return {"t": "function", "v": len(self._functions) - 1}
        raise plain.NotPlain(
            f"a test cannot pass a {type(value).__name__} to the program: only plain data and functions"
        )

    def decode(self, data: plain.Data) -> Any:
        """The value that the program sent.

        Raises:
            BadReply: It is none.
        """
        with self._parsing():
            return plain.decode(data, self._resolve)

    def _resolve(self, tag: str, data: plain.Data) -> Any:
        if tag != "object":
            raise ValueError(f"no such value: {tag}")
        kind, *classes = [str(part) for part in data["kind"]]
        if kind == "exception":
            return self.exception_class(classes)
        return Remote(self, int(data["id"]), str(data["name"]), tuple(map(str, data["classes"])), kind == "class")

    def exception_class(self, classes: list[str]) -> type[BaseException]:
        """The exception class of that name: Python's own, or one made here that stands for the program's."""
        own = getattr(builtins, classes[0], None)
        if isinstance(own, type) and issubclass(own, BaseException):
            return own
        if classes[0] not in self._exceptions:
            bases = classes[1:_MOST_BASES]
            parent = self.exception_class(bases) if bases and bases != ["object"] else RaisedByProgram
            self._exceptions[classes[0]] = type(classes[0], (parent,), {})
        return self._exceptions[classes[0]]

    def _exception(self, raised: Any) -> BaseException:
        with self._parsing():
            self.traceback = str(raised["text"])
            kind = self.exception_class([str(name) for name in raised["classes"]])
            arguments = [plain.decode(argument, self._resolve) for argument in raised["arguments"]]
        try:
            return kind(*arguments)
        except Exception:  # a class whose constructor wants something else
            return RaisedByProgram(f"{kind.__name__}: {arguments}")


def short(value: Any, *, text: bool = False) -> str:
    """The value as it is shown in feedback."""
    try:
        shown = str(value) if text else repr(value)
    except BaseException as error:  # the program may be asked for it, and may be gone
        shown = f"<{type(error).__name__} while showing it>"
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 40]} … {shown[-30:]}"


def _described(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    parts = [short(argument) for argument in args] + [f"{key}={short(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"


def _belongs_to_container(value: Any) -> bool:
    """Whether it is a method of one of the test's own containers, such as ``seen.append``."""
    return isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, list | dict | set)


def _replace(target: Any, content: Any) -> None:
    """Give a container of the test the content that the program left in its copy."""
    if isinstance(target, list | bytearray):
        target[:] = content
    elif isinstance(target, dict | set):
        target.clear()
        target.update(content)
