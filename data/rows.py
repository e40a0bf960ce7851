"""The project's own row schema: bundled samples and users' files. See docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from coda.data.examples import SPLITS, Example, Split
from coda.data.grading.reference import why_ungradable
from coda.data.splits import split_of
from coda.errors import DataError
from coda.program.types import IOCase, Problem, Task

Row = Mapping[str, Any]


def read_rows(rows: Iterable[tuple[str, Row]], name: str) -> tuple[Example, ...]:
    """Turn rows into examples.

    Args:
        rows: Each with the words that say where it stands ("FILE, line 3").
        name: The benchmark's name; rows without an id are numbered with it.

    Raises:
        DataError: A row lacks a field, a field is wrong, an answer cannot be graded, an id occurs twice, or there are
            no rows.
    """
    examples: list[Example] = []
    places: dict[str, str] = {}
    for number, (where, row) in enumerate(rows, start=1):
        example = read_row(row, where, default_id=f"{name}-{number:04d}")
        if example.id in places:
            raise DataError(
                f"{where}: id {example.id!r} stands already at {places[example.id]}. Give every row an id of its own."
            )
        places[example.id] = where
        examples.append(example)
    if not examples:
        raise DataError(f"Benchmark {name} has no rows. Give it at least one problem with its answer.")
    return tuple(examples)


def read_row(row: Row, where: str, *, default_id: str) -> Example:
    """Turn one row into an example; see `read_rows`."""
    fields = _Fields(row, where)
    task = fields.task()
    hidden = fields.texts("hidden_tests")
    problem = Problem(
        text=fields.text("problem"),
        task=task,
        choices=fields.texts("choices"),
        tests=fields.texts("tests"),
        entry_point=fields.text("entry_point", required=False) or None,
    )
    answer = fields.text("solution", required=False) or fields.text("answer", required=task != "code")
    split = fields.split()
    example = Example(
        id=fields.text("id", required=False) or default_id,
        problem=problem,
        answer=answer,
        program=fields.text("program", required=False) or None,
        hidden_tests=(*problem.tests, *hidden) if hidden else (),
        io=fields.cases(),
        split=split or split_of(problem.text),
    )
    reason = why_ungradable(example)
    if reason:
        raise DataError(f"{where}, field answer: {reason}")
    return example


class _Fields:
    """The fields of one row, with errors that say where it stands."""

    def __init__(self, row: Row, where: str) -> None:
        self._row = row
        self._where = where

    def text(self, name: str, *, required: bool = True) -> str:
        value = self._row.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if value is None and not required:
            return ""
        if not isinstance(value, str):
            missing = "is missing" if value is None else f"must be a text, not {_kind(value)}"
            raise self._error(name, missing)
        if required and not value.strip():
            raise self._error(name, "is empty")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._row.get(name)
        if value is None:
            return ()
        values = [str(each) if isinstance(each, (int, float)) else each for each in _listed(value)]
        if not all(isinstance(each, str) for each in values):
            raise self._error(name, f"must be a list of texts, not {_kind(value)}")
        return tuple(values)

    def task(self) -> Task:
        value = self._row.get("task")
        if value is None:
            return self._implied_task()
        if value not in get_args(Task):
            raise self._error("task", f"is {value!r}; it must be one of {', '.join(get_args(Task))}")
        return value  # type: ignore[no-any-return]

    def _implied_task(self) -> Task:
        if self._row.get("choices"):
            return "choice"
        return "code" if any(self._row.get(name) for name in ("tests", "hidden_tests", "io")) else "math"

    def split(self) -> Split | None:
        value = self._row.get("split")
        if value is not None and value not in SPLITS:
            raise self._error("split", f"is {value!r}; it must be one of {', '.join(SPLITS)}")
        return value

    def cases(self) -> tuple[IOCase, ...]:
        value = self._row.get("io")
        if value is None:
            return ()
        cases = _listed(value)
        if not all(isinstance(case, Mapping) and {"stdin", "expected"} <= case.keys() for case in cases):
            raise self._error("io", 'must be a list of {"stdin": …, "expected": …}')
        return tuple(IOCase(str(case["stdin"]), str(case["expected"])) for case in cases)

    def _error(self, name: str, problem: str) -> DataError:
        return DataError(f"{self._where}, field {name}: {problem}.{_HINTS.get(name, _no_hint)(self._row)}")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _kind(value: Any) -> str:
    return {"list": "a list", "dict": "an object", "bool": "a truth value", "NoneType": "nothing"}.get(
        type(value).__name__, f"a {type(value).__name__}"
    )


def _no_hint(row: Row) -> str:
    return ""


def _fields_there(row: Row) -> str:
    return f" The row has: {', '.join(map(str, row)) or 'nothing'}."


_HINTS: dict[str, Callable[[Row], str]] = {"problem": _fields_there, "answer": _fields_there}
